package pipeline

import (
	"strings"
	"testing"
)

// pipelineWithBranches is the small file with a branch for each environment.
func pipelineWithBranches(dev, qa, prod string) string {
	return strings.NewReplacer("spec:\n", "spec:\n  layout: branches\n", "- name: dev\n", "- name: dev\n      branch: "+dev+"\n",
		"- name: qa\n", "- name: qa\n      branch: "+qa+"\n", "- name: prod\n", "- name: prod\n      branch: "+prod+"\n").Replace(minimalPipeline)
}

func TestBranches(t *testing.T) {
	got, err := Parse("p", []byte(pipelineWithBranches("env/dev", "env/qa", "main")))
	if err != nil {
		t.Fatal(err)
	}
	p := got[0]
	for env, want := range map[string]string{"dev": "env/dev", "qa": "env/qa", "prod": "main", "elsewhere": ""} {
		if b := p.BranchOf(env); b != want {
			t.Errorf("%s is on %q, want %q", env, b, want)
		}
	}
	p.Spec.Layout = LayoutDirectories
	if b := p.BranchOf("dev"); b != "" {
		t.Errorf("without the layout, dev is on %q", b)
	}
}

// TestBranchNames puts each name where qa's branch is.
func TestBranchNames(t *testing.T) {
	for name, c := range map[string]struct{ branch, want string }{
		"good":                      {"release/qa", ""},
		"the tracked one":           {"main", ""},
		"not ASCII":                 {"größe/qa", ""},
		"empty":                     {`""`, `"": a branch is missing`},
		"a null":                    {"", "no value; give one or remove the key"},
		"a whole ref":               {"refs/heads/qa", "write the branch without refs/heads/"},
		"another ref":               {"refs/tags/qa", "that can't be the name of a branch"},
		"HEAD":                      {"HEAD", "that can't be the name of a branch"},
		"an option":                 {"--force", "that can't be the name of a branch"},
		"a revision":                {"qa~1", "no spaces, no control characters and none of"},
		"two dots":                  {"a..b", "no '..' and no '@{'"},
		"a dot at the end":          {"a.", "no '.' at its end"},
		"a space":                   {"a b", "no spaces"},
		"a slash at the end":        {"qa/", "between its slashes"},
		"hidden":                    {"env/.qa", "between its slashes"},
		"a lock":                    {"qa.lock/x", "between its slashes"},
		"long":                      {strings.Repeat("x", 201), "at most 200 bytes long"},
		"ours":                      {"liftlock/shop/qa/web", "Liftlock's own branches"},
		"our reverts'":              {"liftlock-revert/x", "Liftlock's own branches"},
		"our state's":               {"liftlock-state", "Liftlock's own branches"},
		"another environment's":     {"env/dev", `"env/dev" is the branch of spec.environments[0] already`},
		"above another's":           {"env", `Git can't have both "env" and "env/dev", the branch of spec.environments[0]`},
		"below another's":           {"env/dev/qa", `Git can't have both "env/dev/qa" and "env/dev", the branch of spec.environments[0]`},
		"no name, but like another": {"env/devel", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("p.yaml", []byte(pipelineWithBranches("env/dev", c.branch, "env/prod")))
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "p.yaml:16: spec.environments[1].branch: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want line 16 with %q", err, c.want)
			}
		})
	}
}
