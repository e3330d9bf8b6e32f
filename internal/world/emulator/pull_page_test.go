package emulator

import (
	"flag"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

var keepPage = flag.String("page", "", "write the pull request's page of TestPullPage to this file, to look at it")

const pageBody = "**Deployment web: 0 of 2 pods ready** (web-qa)\n\n" +
	"Takes **web** in **qa** back: undoes #1 and !1, see https://example.com/x and not a#1b or #&#8203;1.\n\n" +
	"### What moves\n\n| field | from | to |\n|---|---|---|\n| `newTag` | `1.1.0` | `1.0.0` |\n\n" +
	"- [x] verified in dev\n- [ ] approved\n\n<details><summary>2 more</summary>\n\n- one\n- two\n\n</details>\n\n" +
	"```diff\n@@ apps/v1 Deployment web @@\n- image: web:1.1.0\n+ image: web:<1.0.0>\n```\n\n" +
	"<!-- liftlock:revert -->\n<script>alert(1)</script><img src=x onerror=alert(2)> <a href=\"https://example.com\" style=\"x\" onclick=\"alert(4)\">b</a> <span class=\"state\">c</span><iframe src=\"https://example.com\"></iframe><input type=\"text\" name=\"token\"><form action=\"/x\"></form>\n\n[d](javascript:alert(3))\n"

// TestPullPage: what a forge shows of Markdown, and of a pull request.
func TestPullPage(t *testing.T) {
	for _, c := range []struct {
		face       Face
		path, link string
	}{
		{GitHub, "/acme/fleet/pull/2", `undoes <a href="/acme/fleet/pull/1" rel="nofollow">#1</a> and !1, see`},
		{GitLab, "/acme/fleet/-/merge_requests/2", `undoes #1 and <a href="/acme/fleet/-/merge_requests/1" rel="nofollow">!1</a>, see`},
	} {
		t.Run(string(c.face), func(t *testing.T) {
			f := newPageForge(t, c.face)
			page, header := getPage(t, f.URL()+c.path)
			for _, want := range []string{
				"<h1>Revert &lt;web&gt; <small>" + c.face.pullSign() + "2</small></h1>", `<span class="state open">open</span>`, "<b>linus</b> wants to merge 1 commit into <code>main</code> from <code>fix</code>",
				"<strong>Deployment web: 0 of 2 pods ready</strong>", "<td><code>newTag</code></td>", c.link, `<a href="https://example.com/x" rel="nofollow">https://example.com/x</a>`, "not a#1b or #\u200b1.",
				`<input checked="" disabled="" type="checkbox"`, "<details><summary>2 more</summary>", "<li>two</li>",
				`<code class="language-diff"><span class="hunk">@@ apps/v1 Deployment web @@`, `<span class="del">- image: web:1.1.0`, `<span class="add">+ image: web:&lt;1.0.0&gt;`,
				`<b>liftlock</b> <span class="soft">pending · approvals: 0 of 1</span> <a href="https://liftlock.example/p/1">details</a>`,
				`<span class="good">✓</span> ada <span class="soft">approved these changes</span>`, `<span class="label">env/qa</span>`,
				"<b>Back to 1.0.0</b> <span class=\"soft\">linus", "<pre>It was well then.</pre>", `<span class="add">+newTag: 1.0.0`, "<p>Why <em>now</em>?</p>", `<span class="reaction">👀 ada</span>`,
			} {
				if !strings.Contains(page, want) {
					t.Errorf("the page has no %q", want)
				}
			}
			for _, refused := range []string{"<script", "onerror", "javascript:", "onclick", "style=\"x\"", `<span class="state">c`, "<iframe", `type="text"`, "<form", "liftlock:revert"} {
				if strings.Contains(page, refused) {
					t.Errorf("the page has %q", refused)
				}
			}
			if got := header.Get("Content-Security-Policy"); !strings.Contains(got, "default-src 'none'") {
				t.Errorf("its policy is %q", got)
			}
			if t.Failed() {
				t.Log(page)
			}
			if *keepPage != "" && c.face == GitHub {
				if err := os.WriteFile(*keepPage, []byte(page), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func getPage(t *testing.T, url string) (string, http.Header) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() // it is only read
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v\n%s", url, res.StatusCode, err, body)
	}
	return string(body), res.Header
}

// newPageForge has two pull requests, of which the second has all that a page shows.
func newPageForge(t *testing.T, face Face) *Forge {
	t.Helper()
	f, err := NewForge(ForgeOptions{Dir: t.TempDir(), Face: face})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, login := range []string{"acme", "linus", "ada"} {
		must(f.AddUser(login, "token-of-"+login, UserOptions{}))
	}
	must(f.CreateRepo("acme/fleet", RepoOptions{Files: map[string]string{"qa.yaml": "newTag: 1.1.0\n"}, Author: "linus", Access: map[string]Permission{"linus": Write, "ada": Write}}))
	_, err = f.CommitAs("acme/fleet", "linus", "other", "Other", map[string]string{"other": "x\n"})
	must(err)
	_, err = f.OpenPull("acme/fleet", "linus", "other", "main", "Other", "")
	must(err)
	head, err := f.CommitAs("acme/fleet", "linus", "fix", "Back to 1.0.0\n\nIt was well then.", map[string]string{"qa.yaml": "newTag: 1.0.0\n"})
	must(err)
	number, err := f.OpenPull("acme/fleet", "linus", "fix", "main", "Revert <web>", pageBody)
	must(err)
	must(f.SetStatus("acme/fleet", "linus", head, Status{Context: "liftlock", State: "pending", Description: "approvals: 0 of 1", TargetURL: "https://liftlock.example/p/1"}))
	must(f.AddLabel("acme/fleet", number, "linus", "env/qa"))
	comment, err := f.Comment("acme/fleet", number, "ada", "Why *now*?")
	must(err)
	must(f.withPull("acme/fleet", number, "ada", func(p *pull, u *account) error {
		for _, c := range p.comments {
			if c.id == comment {
				c.reactions = append(c.reactions, &reaction{user: u, content: "eyes"})
			}
		}
		return nil
	}))
	must(f.Approve("acme/fleet", number, "ada"))
	return f
}
