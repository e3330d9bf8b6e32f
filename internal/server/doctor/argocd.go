package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/wording"
)

// ArgoCD is what is read of an Argo CD.
type ArgoCD interface {
	// Inspect reads how it is set up and what may be done there. The error is that it can't be
	// reached, or that the credentials are refused (argocd.IsRefused).
	Inspect(ctx context.Context, now time.Time) (*argocd.Inspection, error)
}

// maxNamed bounds how many Applications are named in a line.
const maxNamed = 5

// checkArgoCD checks one Argo CD of the server's file.
func (d *doctor) checkArgoCD(ctx context.Context, c *config.ArgoCD) (found findings) {
	where := "argocd " + c.Name
	ctx, cancel := d.limit(ctx)
	defer cancel()
	i, err := d.ArgoCDs[c.Name].Inspect(ctx, d.Now())
	var kubeconfig *argocd.KubeconfigError
	switch {
	case errors.As(err, &kubeconfig):
		found.add("argocd-kubeconfig", where, err.Error(), "correct argocd[].kubernetes.kubeconfig or context in the server's file; in a "+
			"pod leave both out")
		return found
	case argocd.IsRefused(err):
		found.add("argocd-refused", where, err.Error(), "correct the kubeconfig's credentials, or argocd[].api.token, in the server's file")
		return found
	case err != nil:
		found.add("argocd-unreachable", where, err.Error(), "check the address, the certificate's authority and the network; nothing of "+
			"it is verified, merged or reverted while it is away")
		return found
	}
	for _, m := range i.Missing {
		code := Code("argocd-limited")
		if m.Required {
			code = "argocd-forbidden"
		}
		found.add(code, where, "a right is missing: "+m.Without, "grant it in "+m.Rule)
	}
	d.checkTokenEnd(&found, where, i.TokenEnds)
	checkLine(&found, where, c, i)
	if i.HealthHidden > 0 {
		found.add("argocd-health-hidden", where, fmt.Sprintf("%s don't say which of their resources are unhealthy, so where something "+
			"else on the cluster is unwell too, a person has to decide on a revert", wording.Count(i.HealthHidden, "Application")),
			`give argocd[].api, or set controller.resource.health.persist: "true" in argocd-cmd-params-cm`)
	}
	if len(i.Closed) > 0 {
		found.add("argocd-windows-closed", where, "their project's sync windows let no sync begin within a year: "+
			wording.JoinFew(i.Closed, maxNamed), "correct the AppProject's syncWindows: such targets are never verified")
	}
	if i.Applications == 0 && len(found) == 0 {
		found.add("argocd-empty", where, "no Application is there",
			"correct argocd[].kubernetes.namespaces (or api.projects): the namespaces that Applications are in, Argo CD's own first")
	}
	found.addOK(0, CodeArgoCD, where, describeArgoCD(i))
	return found
}

func describeArgoCD(i *argocd.Inspection) string {
	version := ""
	if i.Line != "" {
		version = " is of the line " + i.Line + " and"
	}
	return fmt.Sprintf("%s%s shows its Applications", i.Source, version)
}

// checkTokenEnd checks how long a token of an Argo CD is good for.
func (d *doctor) checkTokenEnd(found *findings, where string, end time.Time) {
	left := end.Sub(d.Now())
	switch {
	case end.IsZero() || left >= tokenWarning:
	case left <= 0:
		found.add("argocd-token-ended", where, "the token ended on "+end.UTC().Format(time.DateOnly),
			"make a new one (argocd account generate-token) and put it where argocd[].api has it")
	default:
		found.add("argocd-token-ends", where, fmt.Sprintf("the token ends in %d days, on %s", int(left.Hours()/24),
			end.UTC().Format(time.DateOnly)), "make a new one (argocd account generate-token), put it where argocd[].api has it, and "+
			"restart the server")
	}
}

// checkLine checks that the line of Argo CD is known by which ApplicationSets are resolved.
func checkLine(found *findings, where string, c *config.ArgoCD, i *argocd.Inspection) {
	switch {
	case c.Version != "" && i.Line != "" && lineOf(c.Version) != i.Line:
		found.add("argocd-version-other", where, fmt.Sprintf("the server's file says that it is %s, and it is of the line %s", c.Version,
			i.Line), "leave argocd[].version out, or correct it: ApplicationSets are resolved as that version does")
	case c.Version != "":
	case i.LineErr != nil:
		found.add("argocd-version-unknown", where, "which line of Argo CD it is can't be found out: "+i.LineErr.Error(),
			"name it in argocd[].version: ApplicationSets are resolved as 2.14 does until then")
	case i.Line == "":
		found.add("argocd-version-unknown", where, "it is older than 2.14", "upgrade it: ApplicationSets are resolved as 2.14 does")
	}
}

// lineOf is the line of a version as the server's file has it: 3.5 of v3.5.7.
func lineOf(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(len(parts), 2)], ".")
}
