package wording

import "testing"

func TestForForge(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a number", "#12 is open (#13), see [#14] and **#15**.", "!12 is open (!13), see [!14] and **!15**."},
		{"the word", "Pull request #3: close this pull request; several pull requests wait.", "Merge request !3: close this merge request; several merge requests wait."},
		{"a number of somebody else's", "fixes #&#8203;12", "fixes #&#8203;12"},
		{"code", "`/liftlock hold pr` on `#12`, and #13", "`/liftlock hold pr` on `#12`, and !13"},
		{"code as HTML", "<code>#12 | pull request</code> #13", "<code>#12 | pull request</code> !13"},
		{"a block", "```diff\n+ see #12\n/merge\n```\n#13", "```diff\n+ see #12\n/merge\n```\n!13"},
		{"a block that doesn't end", "#13\n```\n#12", "!13\n```\n#12"},
		{"a mark", "<!-- liftlock: #12 -->\n#13", "<!-- liftlock: #12 -->\n!13"},
		{"an address", "[#7](https://git.example/a/b/-/merge_requests/7#note_12) https://git.example/#12 #8", "[!7](https://git.example/a/b/-/merge_requests/7#note_12) https://git.example/#12 !8"},
		{"a heading", "## Gates\n#nothing", "## Gates\n#nothing"},
		{"nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ForForge("gitlab", c.text); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			for _, other := range []string{"github", "gitea", ""} {
				if got := ForForge(other, c.text); got != c.text {
					t.Errorf("on %q it is %q", other, got)
				}
			}
		})
	}
}

// TestForPage words by the address of a page, on whatever host and below whatever path.
func TestForPage(t *testing.T) {
	for page, want := range map[string]string{
		"https://gitlab.com/acme/ops/fleet/-/merge_requests/12":     "!12 the merge request",
		"https://git.example.com/lab/acme/fleet/-/merge_requests":   "!12 the merge request",
		"https://github.com/acme/fleet/pull/12":                     "#12 the pull request",
		"https://git.example.com/acme/fleet/pulls/12":               "#12 the pull request",
		"https://git.example.com/merge_requests/merge_requests/12/": "#12 the pull request",
		"": "#12 the pull request",
	} {
		if got := PullName(12, page) + ForPage(page, " the pull request"); got != want {
			t.Errorf("%q: %q, want %q", page, got, want)
		}
	}
}
