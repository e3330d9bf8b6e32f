package facts

import "testing"

// TestMergeWithMoreIsUngated holds that a merge of our head and the base is on record as merged past
// its gates when it was made of more than these, whatever it was that was added, and the forge's own is not.
func TestMergeWithMoreIsUngated(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"the forge's":              {nil, ""},
		"with a file besides":      {map[string]string{"more": "x"}, "merged by mallory without gates: head"},
		"with another release":     {map[string]string{overlayFile("web", "qa"): overlayText("web", "6.6.6")}, "merged by mallory without gates: head"},
		"with more in the overlay": {map[string]string{overlayFile("web", "qa"): overlayText("web", "1.1.0") + "replicas: [{name: web, count: 2}]\n"}, "merged by mallory without gates: head"},
	} {
		for _, method := range []string{"merge", "squash"} {
			t.Run(name+", "+method, func(t *testing.T) {
				w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
				n, branch, head := openToQA(w)
				w.soak("web")
				w.bringUpToDate(n, branch, head, tc.files)
				w.mergeBy(n, "mallory", method)
				ev, _ := w.evaluate("web", false)
				c := ev.Components[0]
				_, _, err := w.o.Records(w.ctx(), c)
				w.must(err)
				got := ""
				for _, u := range c.Ungated {
					got += u.String()
				}
				if got != tc.want {
					t.Errorf("on record is %q, want %q", got, tc.want)
				}
			})
		}
	}
}
