package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/cli/checkout"
)

// argocdTokenVariable is where Argo CD's own command looks for its token too.
const argocdTokenVariable = "ARGOCD_AUTH_TOKEN"

// maxTokenFile bounds a file that holds a token.
const maxTokenFile = 64 << 10

// apiFlags say how a running Argo CD is reached by its own API.
type apiFlags struct {
	url, tokenFile, caFile string
	insecure               bool
	projects               []string
}

func (a *apiFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.url, "argocd-url", "", "the address of argocd-server: its API tells of the running Argo CD's "+
		"ApplicationSets, projects and clusters, without any access to its cluster; the token is that of --argocd-token-file or $"+
		argocdTokenVariable)
	cmd.Flags().StringVar(&a.tokenFile, "argocd-token-file", "", "a file with the token of an Argo CD account or project role (default: $"+
		argocdTokenVariable+")")
	cmd.Flags().StringVar(&a.caFile, "argocd-ca-file", "", "a file of authorities besides the system's, in PEM, for Argo CD's certificate")
	cmd.Flags().BoolVar(&a.insecure, "argocd-insecure", false, "don't check Argo CD's certificate")
	cmd.Flags().StringSliceVar(&a.projects, "argocd-project", nil,
		"the projects whose Applications are asked for; needed with a project role's token (default: all)")
}

// fillConnection says of a connection that it is to Argo CD's API, where the flags do. The token stays out of
// the command line, which everybody on the machine can read.
func (a *apiFlags) fillConnection(c *checkout.Connection) error {
	if a.url == "" {
		for flag, given := range map[string]bool{"token-file": a.tokenFile != "", "ca-file": a.caFile != "", "insecure": a.insecure,
			"project": len(a.projects) > 0} {
			if given {
				return fmt.Errorf("--argocd-%s is for Argo CD's own API: say where that is with --argocd-url", flag)
			}
		}
		return nil
	}
	if c.Kubeconfig != "" || c.Context != "" {
		return errors.New("--argocd-url and --kubeconfig or --context: the running Argo CD is asked by its API or by its cluster's, so " +
			"give one of them")
	}
	token, source := os.Getenv(argocdTokenVariable), "$"+argocdTokenVariable
	if a.tokenFile != "" {
		raw, err := readBounded(a.tokenFile, maxTokenFile)
		if err != nil {
			return fmt.Errorf("--argocd-token-file: %w", err)
		}
		if token, source = strings.TrimSpace(string(raw)), "--argocd-token-file"; token == "" {
			return fmt.Errorf("--argocd-token-file: %s is empty", a.tokenFile)
		}
	}
	c.API = checkout.API{URL: a.url, Token: token, Source: "--argocd-url and " + source, CAFile: a.caFile, Insecure: a.insecure,
		Projects: a.projects}
	return nil
}
