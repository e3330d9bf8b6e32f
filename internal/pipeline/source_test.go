package pipeline

import (
	"strings"
	"testing"
)

func TestSource(t *testing.T) {
	for name, c := range map[string]struct {
		template, component, value string
		repo, revision             string // empty: there is none
	}{
		"a tag":                   {"acme/{{component}}@v{{value}}", "web", "1.5.0", "acme/web", "v1.5.0"},
		"the value itself":        {"acme/{{component}}", "web", "1.5.0", "acme/web", "1.5.0"},
		"one repository":          {"acme/shop@{{component}}/v{{value}}", "web", "1.5.0", "acme/shop", "web/v1.5.0"},
		"blanks":                  {"acme/{{ component }}-api@{{ value }}", "web", "c0ffee", "acme/web-api", "c0ffee"},
		"no value":                {"acme/web@v{{value}}", "web", "", "acme/web", ""},
		"a digest":                {"acme/web", "web", "sha256:c0ffee", "acme/web", ""},
		"a value that is two":     {"acme/web", "web", "1...2", "acme/web", ""},
		"a value that is a query": {"acme/web", "web", "1?x=2", "acme/web", ""},
		"a value that goes up":    {"acme/web", "web", "../other", "acme/web", ""},
		"a value that is a flag":  {"acme/web", "web", "-n", "acme/web", ""},
		"a value without end":     {"acme/web", "web", strings.Repeat("1", 201), "acme/web", ""},
		"a component of dots":     {"acme/{{component}}", "..", "1", "", "1"},
	} {
		s, err := ParseSource(c.template)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		owner, repo, ok := s.Repository(c.component)
		if got := owner + "/" + repo; ok != (c.repo != "") || ok && got != c.repo {
			t.Errorf("%s: the repository is %s, %v", name, got, ok)
		}
		revision, ok := s.Revision(c.component, c.value)
		if ok != (c.revision != "") || ok && revision != c.revision {
			t.Errorf("%s: the revision is %q, %v", name, revision, ok)
		}
	}
	if _, _, ok := (Source{}).Repository("web"); ok {
		t.Error("no template names a repository")
	}
}

func TestSourceRefuses(t *testing.T) {
	for template, want := range map[string]string{
		"":                                   `"" is not a repository`,
		"web":                                `"web" is not a repository`,
		"acme/":                              `"acme/" is not a repository`,
		"acme/team/web":                      `is not a repository`,
		"https://git.example/x":              `is not a repository`,
		"acme/..":                            `is not a repository`,
		"{{component}}/web":                  `the owner "{{component}}" has something between braces`,
		"acme/{{value}}":                     `the repository "{{value}}" has something between braces`,
		"acme/web@{{environment}}-{{value}}": `the revision "{{environment}}-{{value}}" has something between braces`,
		"acme/web@main":                      `the revision "main" is always the same`,
		"acme/web@v{{value}}..x":             `can't be a tag, a branch or a commit`,
		"acme/" + strings.Repeat("x", 500):   `it is 505 bytes long; at most 500`,
	} {
		if _, err := ParseSource(template); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", template, err, want)
		}
	}
}

// FuzzSource holds that whatever is filled in makes one repository and one revision.
func FuzzSource(f *testing.F) {
	f.Add("acme/{{component}}@v{{value}}", "web", "1.5.0")
	f.Add("acme/a@{{value}}{{value}}", "{{value}}", "{{component}}")
	f.Fuzz(func(t *testing.T, template, component, value string) {
		s, err := ParseSource(template)
		if err != nil {
			return
		}
		if owner, name, ok := s.Repository(component); ok && (owner == "" || strings.ContainsAny(owner+name, "/?#%{} \n") || strings.Trim(name, ".") == "") {
			t.Errorf("%q and %q make the repository %q/%q", template, component, owner, name)
		}
		if revision, ok := s.Revision(component, value); ok && (revision == "" || len(revision) > maxRevisionText || strings.Contains(revision, "..") || strings.ContainsAny(revision, "?#%{}:~^\\ \n") || revision[0] == '-' || revision[0] == '/') {
			t.Errorf("%q, %q and %q make the revision %q", template, component, value, revision)
		}
	})
}
