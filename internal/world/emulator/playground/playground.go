package playground

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/imageregistry"
)

// The names in the world. Tokens are words, because they open nothing but this world.
const (
	Repository = "acme/fleet"
	Branch     = "main"
	Bot        = "liftlock-bot"
	Owner      = "ada"
	Colleague  = "grace"
	APIToken   = "playground-api-token-of-ada" // of the server's API and console

	ownerToken     = "playground-token-of-ada"
	colleagueToken = "playground-token-of-grace"
	botToken       = "playground-token-of-the-bot"
	webhookSecret  = "playground-webhook-secret"
)

// timings let a person see each step, and not wait for it.
var timings = argoemulator.Timings{
	Notice: 300 * time.Millisecond, Compare: 100 * time.Millisecond, Sync: 300 * time.Millisecond, Rollout: 500 * time.Millisecond,
	Degrade: 600 * time.Millisecond, LateFailure: 3 * time.Second, HealthLag: 100 * time.Millisecond, Resync: 20 * time.Second,
	Bookmark: 10 * time.Second, Tick: 20 * time.Millisecond,
}

// Options say where a playground is.
type Options struct {
	Dir    string            // where it lives; made when missing; required
	Report func(line string) // is told what the ApplicationSet controller does, a line each; nil: nobody is
	Log    *zap.Logger       // nil: silent
}

// Playground is the world, made and served.
type Playground struct {
	*emulator.Simulation
	EnvFile   string // for a shell: addresses, tokens, the kubeconfig
	ServerURL string // where a server is expected, on a port that was free
	Registry  *imageregistry.Registry

	dir      string // absolute
	report   func(line string)
	mirror   *git.Mirror
	resolver *appset.Resolver
	applied  appliedSets
}

// New makes the world and serves it. The caller closes it.
func New(ctx context.Context, o Options) (_ *Playground, err error) {
	p := &Playground{report: o.Report, resolver: appset.New(appset.Options{Log: o.Log}), applied: appliedSets{objects: map[string]bool{},
		applications: map[string]argoemulator.AppSpec{}}}
	if p.report == nil {
		p.report = func(string) {}
	}
	if p.dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, fmt.Errorf("open the playground: %w", err)
	}
	if err := refuseOther(p.dir); err != nil {
		return nil, err
	}
	if p.Simulation, err = emulator.New(emulator.Options{Dir: p.dir, Timings: timings, Log: o.Log}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if p.Registry, err = imageregistry.Start(); err != nil {
		return nil, err
	}
	if err := p.addAccounts(); err != nil {
		return nil, err
	}
	url, err := p.Forge.GitDir(Repository)
	if err != nil {
		return nil, err
	}
	if p.mirror, err = git.Open(ctx, git.Options{Dir: filepath.Join(p.dir, "argocd.git"), URL: url,
		Author: git.Ident{Name: "argocd", Email: "argocd@users.example"}}); err != nil {
		return nil, fmt.Errorf("open the playground: %w", err)
	}
	return p, p.writeFiles()
}

// Close ends the world. The folder stays.
func (p *Playground) Close() error {
	var err error
	if p.mirror != nil {
		err = p.mirror.Close()
	}
	if p.Registry != nil {
		err = errors.Join(err, p.Registry.Close())
	}
	return errors.Join(err, p.Simulation.Close())
}

// refuseOther leaves a folder alone that has something in it. It is the user's own, or an earlier
// playground's, whose repository has their changes.
func refuseOther(dir string) error {
	found, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(found) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the playground: %w", err)
	}
	return fmt.Errorf("open the playground: %s isn't empty; remove it, or name another folder with --dir", dir)
}

func (p *Playground) addAccounts() error {
	for login, token := range map[string]string{Owner: ownerToken, Colleague: colleagueToken, Bot: botToken} {
		if err := p.Forge.AddUser(login, token, emulator.UserOptions{}); err != nil {
			return err
		}
	}
	return p.Forge.CreateRepo(Repository, emulator.RepoOptions{Branch: Branch, Access: map[string]emulator.Permission{Owner: emulator.Admin,
		Bot: emulator.Admin, Colleague: emulator.Write}})
}

// writeFiles writes what clients need.
func (p *Playground) writeFiles() error {
	kubeconfig := filepath.Join(p.dir, "kubeconfig")
	if err := p.ArgoCD.WriteKubeconfig(kubeconfig); err != nil {
		return err
	}
	address, err := emulator.FreeAddress() // the server's own file has to name it
	if err != nil {
		return err
	}
	p.ServerURL, p.EnvFile = "http://"+address, filepath.Join(p.dir, "env")
	clone := strings.Replace(p.Forge.CloneURL(Repository), "://", "://"+Owner+":"+ownerToken+"@", 1)
	variables := [][2]string{
		{"FORGE", p.Forge.URL()}, {"CLONE", clone}, {"ADA", ownerToken}, {"GRACE", colleagueToken},
		{"FORGE_TOKEN", botToken}, {"WEBHOOK_SECRET", webhookSecret}, {"KUBECONFIG", kubeconfig},
		{"REGISTRY", p.Registry.Host}, {"ADDRESS", address}, {"LIFTLOCK_SERVER", p.ServerURL}, {"LIFTLOCK_TOKEN", APIToken},
	}
	var text strings.Builder
	for _, v := range variables {
		fmt.Fprintf(&text, "export %s='%s'\n", v[0], strings.ReplaceAll(v[1], "'", `'\''`))
	}
	if err := os.WriteFile(p.EnvFile, []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("open the playground: %w", err)
	}
	return nil
}

const (
	// followInterval is how often the controller looks at the branch, in real time.
	followInterval = 100 * time.Millisecond
	// retryRounds is after how many looks it applies again what it couldn't.
	retryRounds = 10
)

// Run follows the branch until the context ends, which is no error. Faults of a commit's sets are
// reported once, and tried again until they are mended or another commit comes.
func (p *Playground) Run(ctx context.Context) error {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	var f follower
	for {
		if err := p.follow(ctx, &f); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// follower is what Run knows of the branch.
type follower struct {
	applied string // the commit that was applied last
	tried   string // the one that was tried last
	wait    int    // looks until it is tried again
	said    string // what was reported last, so that it is reported once
}

// follow looks at the branch once.
func (p *Playground) follow(ctx context.Context, f *follower) error {
	head, err := p.Forge.Head(Repository, Branch)
	if err != nil {
		return err
	}
	say := func(line string) {
		if line != f.said && line != "" {
			p.report(line)
		}
		f.said = line
	}
	if head == "" {
		branches, err := p.Forge.Branches(Repository)
		if err == nil && len(branches) > 0 {
			say(fmt.Sprintf("Argo CD follows the branch %s, and only %s was pushed: git push origin HEAD:%s", Branch,
				strings.Join(branches, ", "), Branch))
		}
		return err
	}
	if f.wait--; head == f.applied || head == f.tried && f.wait > 0 {
		return nil
	}
	f.tried, f.wait = head, retryRounds
	switch err := p.applyCommit(ctx, head); {
	case ctx.Err() != nil:
	case err != nil:
		say(fmt.Sprintf("the ApplicationSets aren't applied: %v", err))
	default:
		f.applied = head
		say("")
	}
	return nil
}
