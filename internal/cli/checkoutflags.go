package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/cli/checkout"
)

// Bounds of what is read because it was named on the command line.
const (
	maxManifest = 16 << 20
	maxClusters = 64 << 20
)

// checkoutFlags are the flags of the commands that work on a checkout.
type checkoutFlags struct {
	repo     string
	address  addressFlags
	known    knownFlags
	globbing string
	version  string
	output   string

	connection checkout.Connection
	api        apiFlags
	argocd     string
}

// addressFlags say which repositories the addresses in manifests are.
type addressFlags struct{ urls, checkouts, sources []string }

func (a *addressFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&a.urls, "repo-url", nil, "an address that manifests use for this repository, besides those of its "+
		"remotes; may be repeated")
	cmd.Flags().StringArrayVar(&a.checkouts, "checkout", nil, "URL=DIR: a checkout of another repository, which generators that read "+
		"that address are given; may be repeated")
}

// addSourceFlag adds the flag of commands that render.
func (a *addressFlags) addSourceFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&a.sources, "source", nil, "URL=FOLDER: what Applications deploy from that address besides this "+
		"repository is read from there: a checkout, or a folder of packed charts (NAME-VERSION.tgz); may be repeated")
}

// asArguments are the flags as they were given, each quoted for a shell, without credentials.
func (a *addressFlags) asArguments() []string {
	var out []string
	for _, url := range a.urls {
		out = append(out, quoteArgument("--repo-url="+appset.WithoutCredentials(url)))
	}
	for _, text := range a.checkouts {
		url, folder, _ := strings.Cut(text, "=")
		out = append(out, quoteArgument("--checkout="+appset.WithoutCredentials(url)+"="+folder))
	}
	return out
}

// open opens the repository that dir lies in, with the other ones that the flags name.
func (a *addressFlags) open(ctx context.Context, dir string) (*checkout.Repository, error) {
	others, err := parseFolders(a.checkouts, "--checkout", "URL=DIR", "https://git.example/acme/config=../config")
	if err != nil {
		return nil, err
	}
	sources, err := parseFolders(a.sources, "--source", "URL=FOLDER", "https://charts.example/stable=../charts")
	if err != nil {
		return nil, err
	}
	r, err := checkout.Open(ctx, dir, a.urls)
	if err != nil {
		return nil, err
	}
	if err := r.AddCheckouts(ctx, others); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if err := r.AddSources(ctx, sources); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// parseFolders reads the values of a flag that gives addresses folders.
func parseFolders(texts []string, flag, form, example string) ([]checkout.OtherCheckout, error) {
	var out []checkout.OtherCheckout
	for _, text := range texts {
		url, folder, ok := strings.Cut(text, "=")
		if !ok || url == "" || folder == "" {
			return nil, fmt.Errorf("%s %q is not %s, as in %s %s", flag, text, form, flag, example)
		}
		out = append(out, checkout.OtherCheckout{URL: url, Dir: folder})
	}
	return out, nil
}

// knownFlags are those that name files of what is known of Argo CD.
type knownFlags struct{ clusters, placements string }

// addFlags adds them; also is what else --clusters takes.
func (kf *knownFlags) addFlags(cmd *cobra.Command, also string) {
	cmd.Flags().StringVar(&kf.clusters, "clusters", "", "a file of Argo CD's cluster Secrets, as kubectl get secret -o yaml prints them"+
		also+"; credentials in them are not looked at (default: the file that the pipeline file names as clusters)")
	cmd.Flags().StringVar(&kf.placements, "placements", "", "a file of PlacementDecisions, as kubectl get placementdecisions -o yaml "+
		"prints them, for clusterDecisionResource generators")
}

// asArguments are the flags that no pipeline file makes needless, as they were given, each quoted for a shell.
func (kf *knownFlags) asArguments() []string {
	if kf.placements == "" {
		return nil
	}
	return []string{quoteArgument("--placements=" + kf.placements)}
}

// read reads the files that the flags name.
func (kf *knownFlags) read(k *checkout.Known) (err error) {
	if kf.clusters != "" && kf.clusters != clustersLive {
		if k.Clusters, k.ClustersFile, err = readClusters(kf.clusters); err != nil {
			return err
		}
	}
	if kf.placements == "" {
		return nil
	}
	data, err := readBounded(kf.placements, maxClusters)
	if err != nil {
		return fmt.Errorf("--placements: %w", err)
	}
	if k.Placements, err = appset.ParsePlacements(data); err != nil {
		return fmt.Errorf("--placements %s: %w", kf.placements, err)
	}
	return nil
}

// clustersLive is the value of --clusters that asks the running Argo CD.
const clustersLive = "live"

// addFlags are those of a command that also prints an answer in several formats.
func (c *checkoutFlags) addFlags(cmd *cobra.Command) {
	c.addCheckoutFlags(cmd)
	cmd.Flags().StringVarP(&c.output, "output", "o", formatTable, "table, wide, yaml or json")
	completeFormats(cmd, formatTable, formatWide, formatYAML, formatJSON)
}

// addPlanFlags are those of the commands that look ahead from a commit; pipeline says what of a pipeline is looked at.
func (c *checkoutFlags) addPlanFlags(cmd *cobra.Command, q *checkout.PlanQuery, pipeline string) {
	c.addFlags(cmd)
	c.address.addSourceFlag(cmd)
	cmd.Flags().StringVar(&q.Rev, "rev", "", "a branch, tag or commit instead of HEAD")
	cmd.Flags().StringVar(&q.Pipeline, "pipeline", "", pipeline)
	completeFlag(cmd, "pipeline", completePipelines)
}

// addCheckoutFlags are those that say what the checkout is, and what is known beside it.
func (c *checkoutFlags) addCheckoutFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.repo, "repo", "", "a folder in the checkout, or a bare repository (default: the current folder)")
	c.address.addFlags(cmd)
	c.known.addFlags(cmd, ", or live to ask Argo CD")
	cmd.Flags().StringVar(&c.globbing, "globbing", appset.GlobbingGit,
		"how git file generators match paths: git, the controller's default, or doublestar, its new git file globbing")
	cmd.Flags().StringVar(&c.version, "argocd-version", "", "the Argo CD that is meant, as v3.5.7 or 3.5: what ApplicationSets generate "+
		"depends on it (default: that of the running one where there is a connection, else as 2.14 does)")
	c.api.addFlags(cmd)
	cmd.Flags().StringVar(&c.connection.Kubeconfig, "kubeconfig", "",
		"how to reach the running Argo CD by its cluster (default: as kubectl does)")
	cmd.Flags().StringVar(&c.connection.Context, "context", "", "the kubeconfig's context (default: the current one)")
	cmd.Flags().StringSliceVar(&c.connection.Namespaces, "namespace", []string{"argocd"},
		"namespaces with Applications and ApplicationSets; the first is Argo CD's own")
	cmd.Flags().StringVar(&c.argocd, "argocd", "", "which of the Argo CDs that the pipelines name the running one is; needed only where "+
		"they name several")
}

// loadKnown reads what the flags say of Argo CD, and asks a running one if they say
// so or if connect does.
func (c *checkoutFlags) loadKnown(ctx context.Context, connect bool) (k checkout.Known, err error) {
	switch c.globbing {
	case appset.GlobbingGit, appset.GlobbingDoublestar:
		k.Globbing = c.globbing
	default:
		return k, fmt.Errorf("--globbing is %s or %s, not %q", appset.GlobbingGit, appset.GlobbingDoublestar, c.globbing)
	}
	if c.version != "" {
		if k.Version, err = appset.ParseVersion(c.version); err != nil {
			return k, fmt.Errorf("--argocd-version: %w", err)
		}
	}
	if c.known.clusters == clustersLive {
		connect, c.connection.Clusters = true, true
	}
	if err := c.known.read(&k); err != nil {
		return k, err
	}
	if err := c.api.fillConnection(&c.connection); err != nil {
		return k, err
	}
	if connect || c.connection.API.URL != "" {
		if len(c.connection.Namespaces) == 0 {
			return k, errors.New("--namespace is empty")
		}
		k.ArgoCD = c.argocd
		k.Running, err = checkout.Connect(ctx, c.connection)
	}
	return k, err
}

// readClusters reads the file of --clusters, and says where that is.
func readClusters(name string) (clusters []appset.Cluster, file string, err error) {
	data, err := readBounded(name, maxClusters)
	if err != nil {
		return nil, "", fmt.Errorf("--clusters: %w", err)
	}
	if clusters, err = appset.ParseClusters(data); err != nil {
		return nil, "", fmt.Errorf("--clusters %s: %w", name, err)
	}
	if file, err = absolutePath(name); err != nil {
		return nil, "", fmt.Errorf("--clusters: %w", err)
	}
	return clusters, file, nil
}

// absolutePath is where a file is, without links on the way.
func absolutePath(name string) (string, error) {
	at, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(at)
}

// chooseFormat is one of the ways to write an answer, by the output flag.
func chooseFormat[T any](output string, table, yaml, json T) (T, error) {
	switch output {
	case formatTable, formatWide:
		return table, nil
	case formatYAML:
		return yaml, nil
	case formatJSON:
		return json, nil
	}
	var none T
	return none, fmt.Errorf("-o is table, wide, yaml or json, not %q", output)
}

// readManifests reads the files of -f, of which one may be standard input.
func readManifests(cmd *cobra.Command, names []string) ([]checkout.File, error) {
	var out []checkout.File
	stdin := false
	for _, name := range names {
		if name == "-" && stdin {
			return nil, errors.New("-f -: standard input can be read once")
		}
		stdin = stdin || name == "-"
		f, err := readManifest(cmd, name)
		if err != nil {
			return nil, fmt.Errorf("-f: %w", err)
		}
		out = append(out, f)
	}
	return out, nil
}

// readManifest reads one file, or standard input.
func readManifest(cmd *cobra.Command, name string) (checkout.File, error) {
	if name == "-" {
		data, err := readAll(cmd.InOrStdin(), "standard input", maxManifest)
		return checkout.File{Name: "standard input", Data: data}, err
	}
	data, err := readBounded(name, maxManifest)
	if err != nil {
		return checkout.File{}, err
	}
	at, err := absolutePath(name)
	return checkout.File{Name: name, Path: at, Data: data}, err
}

// readBounded reads a file that people named.
func readBounded(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder: name the files in it", name)
	}
	return readAll(f, name, most)
}

func readAll(from io.Reader, name string, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, most+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s is larger than the %d bytes that are read", name, most)
	}
	return data, nil
}

// printProblems tells what is wrong on standard error, naming at most named Applications of
// each problem, and returns the exit code that says so.
func printProblems(cmd *cobra.Command, problems, notes []appset.Problem, named int) error {
	w := cmd.ErrOrStderr()
	switch printed := printNotes(cmd, problems, notes, named); printed {
	case 0:
		return nil
	case 1:
		fmt.Fprintln(w, "liftlock: because of this problem the answer is not complete")
	default:
		fmt.Fprintf(w, "liftlock: because of these %d problems the answer is not complete\n", printed)
	}
	return exitError{1}
}

// printNotes prints what is wrong and what should be known on standard error. It returns in how
// many lines it said what is wrong.
func printNotes(cmd *cobra.Command, problems, notes []appset.Problem, named int) int {
	w := cmd.ErrOrStderr()
	for _, n := range appset.GroupProblems(notes, named) {
		fmt.Fprintln(w, "note: "+appset.PrintableLine(n.String()))
	}
	grouped := appset.GroupProblems(problems, named)
	for _, p := range grouped {
		fmt.Fprintln(w, "problem: "+appset.PrintableLine(p.String()))
	}
	return len(grouped)
}
