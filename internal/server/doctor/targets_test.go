package doctor

import (
	"errors"
	"strings"
	"testing"
)

func TestJudgeTargets(t *testing.T) {
	many := []string{"one is wrong", "two is wrong", "three is wrong", "four is wrong"}
	away := errors.New("the cluster is away")
	for name, c := range map[string]struct {
		targets PipelineTargets
		want    Code
		says    string
	}{
		"resolved":                      {PipelineTargets{Targets: 6, Components: 2}, CodeTargets, "6 targets of 2 components"},
		"resolved without an Argo CD":   {PipelineTargets{Targets: 6, Components: 2, Unread: away}, CodeTargets, "6 targets"},
		"a few problems":                {PipelineTargets{Targets: 6, Problems: many[:2]}, "targets-unresolved", "one is wrong; two is wrong"},
		"many problems":                 {PipelineTargets{Problems: many}, "targets-unresolved", "three is wrong; and 1 more"},
		"problems without an Argo CD":   {PipelineTargets{Problems: many, Unread: away}, "targets-unread", "the cluster is away"},
		"nothing generated":             {PipelineTargets{}, "targets-none", "nothing to promote"},
		"nothing without an Argo CD":    {PipelineTargets{Unread: away}, "targets-unread", "the cluster is away"},
		"some kept, others unresolved ": {PipelineTargets{Targets: 1, Problems: many[:1]}, "targets-unresolved", "one is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			var found findings
			judgeTargets(&found, "targets of shop", &c.targets)
			if len(found) != 1 || found[0].Code != c.want || !strings.Contains(found[0].Message, c.says) || (found[0].Cure == "") != (c.want == CodeTargets) {
				t.Errorf("found %+v", found)
			}
		})
	}
}
