package fieldedit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

var update = flag.Bool("update", false, "write the golden files and the list of the corpus anew")

const (
	corpusList    = "testdata/corpus.txt"
	corpusRefused = "testdata/corpus-refused.txt"
)

// corpusModules are modules that this one is built from anyway, and that
// people's files come with.
var corpusModules = []string{
	"github.com/argoproj/argo-cd/v2", "github.com/argoproj/gitops-engine", "helm.sh/helm/v3", "sigs.k8s.io/kustomize/api", "sigs.k8s.io/kustomize/kyaml",
}

// corpusFile is one file of the corpus.
type corpusFile struct {
	sum, module, file string
	data              []byte
}

func (c corpusFile) String() string { return c.module + " " + c.file }

// TestCorpus sets a random scalar in each of hundreds of real files. Every other byte stays, git
// sees one line changed, and readers of YAML 1.1 and 1.2 (of JSON) see that value changed and
// nothing else.
func TestCorpus(t *testing.T) {
	if *update {
		writeCorpus(t)
	}
	files := readCorpus(t)
	if len(files) < 300 {
		t.Fatalf("the corpus has only %d files", len(files))
	}
	draws := 1
	if *long {
		draws = 50
	}
	dir := t.TempDir()
	edits, refused := 0, 0
	var reasons []string
	for n, file := range files {
		places := scalarsOf(t, file)
		if len(places) == 0 {
			t.Errorf("%s has no scalar", file)
			continue
		}
		for draw := range draws {
			rnd := rand.New(rand.NewPCG(uint64(draw), uint64(len(file.data))))
			at := places[rnd.IntN(len(places))]
			edits++
			err := at.check(file, rnd, filepath.Join(dir, fmt.Sprint(draw)), n)
			var r *RefusedError
			switch {
			case errors.As(err, &r):
				refused++
				if draw == 0 {
					reasons = append(reasons, fmt.Sprintf("%s: %v", file, r))
				}
			case err != nil:
				t.Errorf("%s: %s: %v", file, at.path, err)
			}
		}
	}
	t.Logf("%d edits of %d files, %d refused", edits, len(files), refused)
	if refused*20 > edits {
		t.Errorf("%d of %d edits were refused, more than 5%%", refused, edits)
	}
	for draw := range draws {
		oneLineEach(t, filepath.Join(dir, fmt.Sprint(draw)))
	}
	golden(t, corpusRefused, strings.Join(reasons, "\n")+"\n")
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (go test ./internal/overlay -update writes it anew; -file +now):\n%s", file, diff)
	}
}

// oneLineEach holds that git sees one line gone and one come in every file.
func oneLineEach(t *testing.T, dir string) {
	t.Helper()
	c := exec.Command("git", "diff", "--no-index", "--no-renames", "--numstat", "before", "after")
	c.Dir = dir
	out, err := c.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("git diff: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	changed, err := os.ReadDir(filepath.Join(dir, "after"))
	if err != nil || len(changed) != len(lines) {
		t.Errorf("%d files were edited, git sees %d (%v)", len(changed), len(lines), err)
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "1\t1\t") {
			t.Errorf("not one line: %s", line)
		}
	}
}

// scalarAt is where one scalar of a file is.
type scalarAt struct {
	path fieldpath.Path
	node *yaml.Node
}

// scalarsOf lists every scalar that is a value in the file, in its order.
func scalarsOf(t *testing.T, file corpusFile) []scalarAt {
	t.Helper()
	var out []scalarAt
	var roots []*yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(file.data))
	for {
		var n yaml.Node
		if err := dec.Decode(&n); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if root := n.Content[0]; root.Kind != yaml.ScalarNode {
			roots = append(roots, root)
		}
	}
	for i, root := range roots {
		var prefix []fieldpath.Segment
		if len(roots) > 1 {
			prefix = append(prefix, fieldpath.Segment{Kind: fieldpath.Index, Index: i})
		}
		collectScalars(root, prefix, &out)
	}
	return out
}

func collectScalars(n *yaml.Node, at []fieldpath.Segment, out *[]scalarAt) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			collectScalars(n.Content[i+1], appendSegment(at, fieldpath.Segment{Key: n.Content[i].Value}), out)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			collectScalars(item, appendSegment(at, fieldpath.Segment{Kind: fieldpath.Index, Index: i}), out)
		}
	default:
		*out = append(*out, scalarAt{fieldpath.New(at...), n})
	}
}

// check sets the scalar to a random value and compares what readers see.
func (s scalarAt) check(file corpusFile, rnd *rand.Rand, dir string, n int) error {
	// The path as people would give it.
	p, err := fieldpath.Parse(s.path.String())
	if err != nil {
		return err
	}
	value := genValues[rnd.IntN(len(genValues))]
	set, get, readers := SetYAML, GetYAML, []func([]byte) ([]any, error){leavesYAML11, leavesYAML12}
	if strings.HasSuffix(file.file, ".json") {
		set, get, readers = SetJSON, GetJSON, []func([]byte) ([]any, error){leavesJSON}
		switch s.node.Tag {
		case "!!int", "!!float":
			value = fmt.Sprint(rnd.IntN(1000) + 1000)
		case "!!bool":
			value = fmt.Sprint(s.node.Value == "false")
		}
	}
	if old, _, err := get(file.data, p); err == nil && old == value {
		value += "-other"
	}
	after, c, err := set(file.data, p, value)
	if err != nil {
		return err
	}
	if got, ok, err := get(after, p); err != nil || !ok || got != value || c.New != value || c.Line < 1 {
		return fmt.Errorf("%q reads back as %q, %v, %w", value, got, ok, err)
	}
	for _, read := range readers {
		if err := oneLeaf(read, file.data, after, value); err != nil {
			return err
		}
	}
	for side, data := range map[string][]byte{"before": file.data, "after": after} {
		to := filepath.Join(dir, side, fmt.Sprint(n))
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// readCorpus reads the listed files from the modules and checks their hashes.
func readCorpus(t *testing.T) []corpusFile {
	t.Helper()
	list, err := os.Open(corpusList)
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	dirs := map[string]string{}
	var out []corpusFile
	for lines := bufio.NewScanner(list); lines.Scan(); {
		f := strings.SplitN(lines.Text(), " ", 3)
		r := corpusFile{sum: f[0], module: f[1], file: f[2]}
		if dirs[r.module] == "" {
			dirs[r.module] = moduleDir(t, r.module)
		}
		if r.data, err = os.ReadFile(filepath.Join(dirs[r.module], filepath.FromSlash(r.file))); err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(r.data); hex.EncodeToString(sum[:]) != r.sum {
			t.Fatalf("%s isn't the file that is listed; where the module's version was changed on purpose, go test ./internal/overlay -run TestCorpus -update lists it anew", r)
		}
		out = append(out, r)
	}
	return out
}

// moduleDir is where a module's files are, downloaded where they aren't yet.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	for _, args := range [][]string{{"list", "-m", "-json", module}, {"mod", "download", "-json", module}} {
		out, err := exec.Command("go", args...).Output()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		var m struct{ Dir string }
		if err := json.Unmarshal(out, &m); err != nil {
			t.Fatal(err)
		}
		if m.Dir != "" {
			return m.Dir
		}
	}
	t.Fatalf("the module %s has no files", module)
	return ""
}

var argoKind = regexp.MustCompile(`(?m)^kind: (Application|ApplicationSet|AppProject)\s*$`)

// writeCorpus lists the modules' kustomizations, values files, charts, JSON files and Argo CD's
// manifests, each content once. It leaves out templates and files that are no YAML or JSON at all.
func writeCorpus(t *testing.T) {
	t.Helper()
	var lines []string
	seen := map[string]bool{}
	for _, module := range corpusModules {
		dir := os.DirFS(moduleDir(t, module))
		err := fs.WalkDir(dir, ".", func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			base, ext := path.Base(name), path.Ext(name)
			if ext != ".json" && ext != ".yaml" && ext != ".yml" && base != "Kustomization" {
				return nil
			}
			data, err := fs.ReadFile(dir, name)
			if err != nil {
				return err
			}
			named := ext == ".json" || base == "Chart.yaml" || strings.HasPrefix(base, "values") || slices.Contains(kustomizations, base)
			if !named && !argoKind.Match(data) || strings.Contains(name, "/templates/") {
				return nil
			}
			var holds yaml.Node
			if err := yaml.Unmarshal(data, &holds); err != nil || holds.Kind != yaml.DocumentNode || holds.Content[0].Kind == yaml.ScalarNode {
				return nil // not the files of this test
			}
			if ext == ".json" && !json.Valid(data) {
				return nil
			}
			sum := sha256.Sum256(data)
			if key := hex.EncodeToString(sum[:]); !seen[key] {
				seen[key] = true
				lines = append(lines, key+" "+module+" "+name)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(corpusList, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}
