package emulator

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

func FuzzRouter(f *testing.F) {
	for _, path := range []string{"/repos/a/b/issues/comments/1/reactions", "/repos/a/b/issues/1/labels/env%2Fqa", "/repos/a/b/git/refs/heads/x/y", "/repos//b", "/a/b.git/info/refs?service=git-upload-pack", "/%zz"} {
		f.Add("GET", path)
		f.Add("DELETE", path)
	}
	f.Fuzz(func(t *testing.T, method, path string) {
		u, err := url.Parse(path)
		if err != nil {
			return
		}
		r := &http.Request{Method: method, URL: u}
		if g := parseGitPath(gitPath, r); g != nil && (strings.Count(g.repo, "/") != 1 || g.routeName() == "") {
			t.Errorf("%q is Git's with repository %q", path, g.repo)
		}
		rt := routes.findRoute(r)
		if rt == nil {
			return
		}
		if !strings.HasPrefix(rt.pattern, method+" ") {
			t.Errorf("%s %q found %s", method, path, rt.pattern)
		}
		for _, name := range []string{"owner", "repo"} {
			if strings.Contains(rt.pattern, "{"+name+"}") && r.PathValue(name) == "" {
				t.Errorf("%q has no %s for %s", path, name, rt.pattern)
			}
		}
	})
}

func FuzzGitLabRouter(f *testing.F) {
	for _, path := range []string{"/projects/a%2Fb%2Fc/merge_requests/1/merge", "/projects/7/repository/branches/x%2Fy", "/projects//hooks", "/groups/a%2Fb/members/all/3", "/a/b/c.git/info/refs?service=git-upload-pack", "/%zz"} {
		f.Add("GET", path)
		f.Add("DELETE", path)
	}
	f.Fuzz(func(t *testing.T, method, path string) {
		u, err := url.Parse(path)
		if err != nil {
			return
		}
		r := &http.Request{Method: method, URL: u}
		if g := parseGitPath(gitlabGitPath, r); g != nil && (strings.Count(g.repo, "/") < 1 || g.routeName() == "") {
			t.Errorf("%q is Git's with repository %q", path, g.repo)
		}
		rt := gitlabRoutes.findRoute(r)
		if rt == nil {
			return
		}
		for _, part := range strings.Split(rt.pattern, "/") {
			if name, ok := strings.CutPrefix(part, "{"); ok && r.PathValue(strings.TrimSuffix(name, "}")) == "" {
				t.Errorf("%q has no %s for %s", path, name, rt.pattern)
			}
		}
	})
}

func FuzzGitLabParams(f *testing.F) {
	f.Add("labels[]=a&labels[]=b&state=opened", "application/json", `{"title":"T","squash":null,"reviewer_ids":[1,2]}`)
	f.Add("", "application/x-www-form-urlencoded", "body=%2Fclose&internal=1")
	f.Fuzz(func(t *testing.T, query, kind, body string) {
		c := &call{r: &http.Request{URL: &url.URL{RawQuery: query}, Header: http.Header{"Content-Type": {kind}}}, body: []byte(body)}
		p, err := c.params()
		if err != nil {
			return
		}
		for name := range p {
			if p.number(name) != 0 && !p.has(name) || p.isTrue(name) && p.text(name) == "" {
				t.Errorf("%s is %v", name, p[name])
			}
			p.list(name)
			if _, err := p.when(name); err == nil && p.text(name) != "" && len(p.text(name)) < len(time.DateOnly) {
				t.Errorf("%s is no time: %v", name, p[name])
			}
		}
	})
}

func FuzzCutQuickActions(f *testing.F) {
	f.Add("one\n/close\ntwo")
	f.Add("```\n/close\n```\n/label ~a")
	f.Fuzz(func(t *testing.T, text string) {
		rest, found := cutQuickActions(text)
		if kept := strings.TrimRight(strings.ReplaceAll(text, "\r", ""), " \t\n\v\f"); len(found) == 0 && rest != kept {
			t.Errorf("%q became %q", text, rest)
		}
		for _, a := range found {
			if a.name == "" || len(rest) >= len(text) {
				t.Errorf("%q has %v and leaves %q", text, a, rest)
			}
		}
	})
}

func FuzzParseCommit(f *testing.F) {
	f.Add("a\x1fb\x1fc d\x1fn\x1fe\x1f1\x1fn\x1fe\x1f2\x1fmessage\n\x02\x00A\x00path\x00M\x00other\x00")
	f.Add("\x02")
	f.Fuzz(func(t *testing.T, record string) {
		c, err := parseCommit(record)
		if err == nil && strings.Contains(c.SHA, fieldSep) {
			t.Errorf("read %q as %+v", record, c)
		}
	})
}

func TestPage(t *testing.T) {
	forge, err := NewForge(ForgeOptions{Dir: t.TempDir()})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	t.Cleanup(func() { must(forge.Close()) })
	must(forge.AddUser("ada", "", UserOptions{}))
	must(forge.CreateRepo("acme/fleet", RepoOptions{Author: "ada", Access: map[string]Permission{"ada": Write},
		Files: map[string]string{"docs/readme": "nothing\n"}}))
	_, err = forge.CommitAs("acme/fleet", "ada", "topic", "Change", map[string]string{"docs/readme": "<script>\n"})
	must(err)
	n, err := forge.OpenPull("acme/fleet", "ada", "topic", "main", "A <b>title</b>", "body")
	must(err)
	p, err := forge.Pull("acme/fleet", n)
	must(err)
	show := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		forge.serveHTTP(w, httptest.NewRequest("GET", path, nil))
		return w
	}
	text := show(strings.TrimPrefix(p.URL, forge.URL())).Body.String()
	for _, want := range []string{"A &lt;b&gt;title", "+&lt;script&gt;", "<b>ada</b> wants to merge"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q:\n%s", want, text)
		}
	}
	if w := show("/acme/fleet/pull/99"); w.Code != http.StatusNotFound {
		t.Errorf("an unknown one: %d", w.Code)
	}
}
