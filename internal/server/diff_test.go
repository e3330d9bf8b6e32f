package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// wholeLink is the link in a pull request's body to the whole rendered difference.
var wholeLink = regexp.MustCompile(`\[The whole difference\]\(http://server\.example(/diff\?[^)]+)\)`)

// getDiff asks for the rendered difference of a pull request.
func (ha *harness) getDiff(pull int) (*api.RenderedDiff, error) {
	ha.t.Helper()
	var page api.Promotions
	if _, err := ha.getJSON("/api/v1/promotions?"+url.Values{"repository": {"hub:" + repoName}, "pull": {itoa(pull)}}.Encode(), &page); err != nil {
		return nil, err
	}
	if len(page.Promotions) != 1 {
		return nil, fmt.Errorf("%d promotions of #%d", len(page.Promotions), pull)
	}
	var d api.RenderedDiff
	_, err := ha.getJSON(fmt.Sprintf("/api/v1/promotions/%d/diff", page.Promotions[0].ID), &d)
	return &d, err
}

// TestTheWholeDifference shows what a promotion changes in the manifests. It does so as long as it
// is open and ours, when it has landed, when it has landed long ago, and when the database is gone.
// Another account's push is never rendered.
func TestTheWholeDifference(t *testing.T) {
	files := map[string]string{}
	for _, env := range []string{"dev", "qa", "prod"} {
		files[overlayPath("web", env)+"/secret.yaml"] = "apiVersion: v1\nkind: Secret\nmetadata: {name: web}\nstringData: {password: hunter-" + env + "}\n"
		files[overlayPath("web", env)+"/kustomization.yaml"] = strings.NewReplacer("NAME", "web", "TAG", "1.0.0", "base\n", "base\n  - secret.yaml\n").Replace(kustomizationTemplate)
	}
	s := startHarness(t, harnessOptions{files: files, pipeline: pipelineYAML([]string{`  - files: {include: ["secret.yaml"]}`})})
	p := s.releaseToProd("1.1.0")
	var first *api.RenderedDiff
	s.waitFor("the difference is there", func() (bool, string) {
		d, err := s.getDiff(p.Number)
		first = d
		return err == nil, fmt.Sprint(err)
	})
	if first.Landed || first.After != p.Head || len(first.Targets) != 1 || fmt.Sprint(first.Targets[0].Names) != "[web-prod]" || fmt.Sprint(first.Files) != fmt.Sprintf("[%s/kustomization.yaml %[1]s/secret.yaml]", overlayPath("web", "prod")) ||
		len(first.Targets[0].Objects) != 2 || !first.Targets[0].Objects[0].Fields[0].Hidden {
		t.Errorf("%+v", first)
	}
	link := wholeLink.FindStringSubmatch(p.Body)
	if link == nil {
		t.Fatalf("the body has no link to the whole:\n%s", p.Body)
	}
	if status, body := s.getText(link[1]); status != http.StatusOK || !strings.Contains(body, "registry.example/web:1.1.0") || strings.Contains(body, "hunter") {
		t.Errorf("%s: HTTP %d\n%s", link[1], status, body)
	}

	// Another account's push to it is theirs.
	theirs := s.editTagOn("grace", p.Branch, "web", "prod", "6.6.6")
	s.awaitPull(p.Number, "is stopped", func(p *emulator.PullRequest) bool { return liftlockStatus(p.Statuses).State == "failure" })
	if _, err := s.getDiff(p.Number); err == nil || !strings.Contains(err.Error(), "not what Liftlock composed") {
		t.Errorf("what somebody pushed: %v", err)
	}
	s.awaitReaction(p.Number, s.addComment(p.Number, "linus", "/liftlock retry"), "+1")
	s.awaitPull(p.Number, "is ours again", func(p *emulator.PullRequest) bool { return p.Head != theirs })
	s.approve(p.Number, "ada")
	s.approve(p.Number, "grace")
	s.awaitMerged(p.Number)
	landed := func(what string, pull int) (d *api.RenderedDiff) {
		s.waitFor(what, func() (bool, string) {
			var err error
			d, err = s.getDiff(pull)
			return err == nil && d.Landed, fmt.Sprint(d, err)
		})
		return d
	}
	d := landed("it has landed", p.Number)
	if len(d.Targets) != 1 || fmt.Sprint(d.Targets[0].Objects) != fmt.Sprint(first.Targets[0].Objects) {
		t.Errorf("%+v", d)
	}
	before := s.listPulls("web", "qa")[0].Number
	qa := landed("what landed before is still shown", before)

	// Long ago, and after the loss of all records.
	s.awaitMerged(s.releaseAndApprove("1.2.0"))
	s.deleteDatabase()
	s.start()
	again := landed("it is found again without the database", before)
	if again.Before != qa.Before || again.After != qa.After || fmt.Sprint(again.Targets[0].Objects) != fmt.Sprint(qa.Targets[0].Objects) {
		t.Errorf("it was\n%+v\nit is\n%+v", qa, again)
	}
}

// releaseAndApprove releases a tag and approves it for prod; its pull request's number there.
func (ha *harness) releaseAndApprove(tag string) int {
	ha.t.Helper()
	ha.commitRelease("web", tag)
	p := ha.awaitPromotion("web", "prod", tag)
	ha.approve(p.Number, "ada")
	ha.approve(p.Number, "grace")
	return p.Number
}
