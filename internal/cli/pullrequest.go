package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/cli/checkout"
	"github.com/liftlock/liftlock/internal/server"
	"github.com/liftlock/liftlock/internal/server/config"
)

// forgeTokenVariable is the variable with the token for the forge, where no flag names a file with it.
const forgeTokenVariable = "LIFTLOCK_FORGE_TOKEN"

// pullRequestFlags are the flags of commands that open a pull request.
type pullRequestFlags struct {
	open                      bool
	forgeType, url, tokenFile string
}

// addFlags adds them; usage says what the pull request is for.
func (p *pullRequestFlags) addFlags(c *cobra.Command, usage string) {
	c.Flags().BoolVar(&p.open, "pull-request", false, usage)
	c.Flags().StringVar(&p.forgeType, "forge-type", "", "with --pull-request: github, gitlab or gitea (default: that of github.com and "+
		"gitlab.com)")
	c.Flags().StringVar(&p.url, "forge-url", "", "with --pull-request: the address of the forge's API (default: made of origin's host)")
	c.Flags().StringVar(&p.tokenFile, "forge-token-file", "", "with --pull-request: a file with a token that may push and open pull "+
		"requests (default: $"+forgeTokenVariable+")")
}

// checkFlags refuses flags that say nothing beside the others; unless are those that say nothing beside a pull request.
func (p *pullRequestFlags) checkFlags(c *cobra.Command, unless ...string) error {
	refused, why := []string{"forge-type", "forge-url", "forge-token-file"}, "it goes with --pull-request"
	if p.open {
		refused, why = unless, "--pull-request leaves the checkout as it is, and prints an address"
	}
	for _, name := range refused {
		if c.Flags().Changed(name) {
			return fmt.Errorf("--%s says nothing here: %s", name, why)
		}
	}
	return nil
}

// publicForges are the types of forges by their public hosts.
var publicForges = map[string]string{"github.com": config.GitHub, "gitlab.com": config.GitLab}

// serverFile is the part of a server's file that says where the pull request is opened.
func (p *pullRequestFlags) serverFile(origin, branch string) (*config.Config, error) {
	host, path := splitRemote(origin)
	kind := cmp.Or(p.forgeType, publicForges[host])
	repository := config.Repository{Forge: "origin", Name: path, Branch: branch}
	owner, name := repository.Split()
	switch {
	case owner == "" || name == "" || host == "":
		return nil, fmt.Errorf("the remote origin is %q, which is no repository of a forge, such as https://github.com/acme/fleet", origin)
	case branch == "":
		return nil, errors.New("which branch the remote has checked out isn't known here: git remote set-head origin --auto finds it out")
	case kind == "":
		return nil, fmt.Errorf("say with --forge-type which forge %s is: github, gitlab or gitea", host)
	case kind != config.GitHub && kind != config.GitLab && kind != config.Gitea:
		return nil, fmt.Errorf("--forge-type: %q is neither github, gitlab nor gitea", kind)
	}
	token, err := p.readToken()
	if err != nil {
		return nil, err
	}
	forge := config.Forge{Name: "origin", Type: kind, URL: cmp.Or(p.url, apiOf(kind, host))}
	forge.Auth.Token = config.Secret(token)
	return &config.Config{Forges: []config.Forge{forge}, Repositories: []config.Repository{repository}}, nil
}

// readToken reads the token for the forge, which stays out of the command line.
func (p *pullRequestFlags) readToken() (string, error) {
	token := os.Getenv(forgeTokenVariable)
	if p.tokenFile != "" {
		raw, err := readBounded(p.tokenFile, maxTokenFile)
		if err != nil {
			return "", fmt.Errorf("--forge-token-file: %w", err)
		}
		token = string(raw)
	}
	if token = strings.TrimSpace(token); token == "" {
		return "", fmt.Errorf("give a token that may push and open pull requests in --forge-token-file or $%s", forgeTokenVariable)
	}
	return token, nil
}

// splitRemote is a remote's host, without a port, and its path; both are empty for a folder.
func splitRemote(remote string) (host, path string) {
	if u, err := url.Parse(remote); err == nil && u.Host != "" {
		host, path = u.Hostname(), u.Path
	} else if at, rest, ok := strings.Cut(remote, ":"); ok && !strings.Contains(at, "/") { // git@host:owner/name
		host, path = at[strings.LastIndexByte(at, '@')+1:], rest
	}
	return strings.ToLower(host), strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}

// apiOf is where a forge's API is by its host; empty: where its driver knows.
func apiOf(kind, host string) string {
	switch {
	case publicForges[host] != "":
		return ""
	case kind == config.GitHub:
		return "https://" + host + "/api/v3"
	}
	return "https://" + host
}

// openPullRequest opens the pull request with a proposal, or with the draft of one.
func (p *pullRequestFlags) openPullRequest(cmd *cobra.Command, r *checkout.Repository, q checkout.ProposalQuery) error {
	ctx := cmd.Context()
	file, err := p.forgeOf(ctx, r)
	if err != nil {
		return err
	}
	proposal, err := describeProposal(r.Propose(ctx, q))
	if err != nil {
		return err
	}
	if proposal.Nothing != "" {
		return errors.New(proposal.Nothing)
	}
	opened, err := server.OpenProposal(ctx, server.Options{Config: file, Version: Version()}, proposal)
	if err != nil {
		return fmt.Errorf("open a pull request with the proposal: %w", err)
	}
	how := "is open already, and no other one is opened"
	if opened.IsNew {
		how = "is open; merged, Liftlock observes, and closed, that is a no"
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", opened.URL, how)
	return err
}

// openReleasePull opens the pull request with a release whose branch was pushed, or brings the open one up to date.
func (p *pullRequestFlags) openReleasePull(ctx context.Context, file *config.Config, released *checkout.Released) (string, error) {
	title, body, _ := strings.Cut(released.Message, "\n")
	url, err := server.OpenRelease(ctx, server.Options{Config: file, Version: Version()}, server.ReleasePull{
		Title: title, Body: strings.TrimSpace(body), Head: released.Head, Base: released.Branch})
	if err != nil {
		return "", fmt.Errorf("%s is pushed; open a pull request from it: %w", released.Head, err)
	}
	return url, nil
}

// forgeOf is the part of a server's file that says where a checkout's pull requests are opened.
func (p *pullRequestFlags) forgeOf(ctx context.Context, r *checkout.Repository) (*config.Config, error) {
	origin, err := r.Origin(ctx)
	if err != nil {
		return nil, err
	}
	return p.serverFile(origin, r.DefaultBranch())
}
