package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/liftlock/liftlock/internal/cli"
)

var update = flag.Bool("update", false, "write the goldens anew")

const (
	testVersion = "v1.2.3"
	testCommit  = "0123456789abcdef0123456789abcdef01234567"
)

var testDate = time.Date(2026, 11, 28, 9, 30, 0, 0, time.UTC)

// buildPrograms builds a small program of our program's name and flags for some platforms.
func buildPrograms(t *testing.T, platforms ...string) (programs string) {
	t.Helper()
	source, programs := t.TempDir(), t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module github.com/liftlock/liftlock\n\ngo 1.26\n",
		"cmd/liftlock/main.go": "package main\n\nimport \"os\"\n\nvar version, commit string\n\n" +
			"func main() { _, _ = os.Stdout.WriteString(version + commit) }\n",
	} {
		file := filepath.Join(source, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range platforms {
		system, architecture, _ := strings.Cut(p, "-")
		c := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags",
			"-s -w -X main.version="+testVersion+" -X main.commit="+testCommit,
			"-o", filepath.Join(programs, p, program{platform: p}.fileName()), "./cmd/liftlock")
		c.Dir = source
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+system, "GOARCH="+architecture)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return programs
}

func newRelease(programs string) release {
	return release{programs: programs, modules: "not needed", license: "../../LICENSE", version: testVersion, commit: testCommit, date: testDate}
}

// TestRelease holds what a release consists of, and that it is the same bytes in another folder
// and at another time.
func TestRelease(t *testing.T) {
	programs := buildPrograms(t, "linux-amd64", "windows-arm64")
	once, again := filepath.Join(t.TempDir(), "once"), filepath.Join(t.TempDir(), "again")
	if err := os.MkdirAll(filepath.Join(once, "of the last release"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{once, again} {
		if err := writeRelease(newRelease(programs), out); err != nil {
			t.Fatal(err)
		}
		// What is packed doesn't depend on when it was built.
		file := filepath.Join(programs, "linux-amd64", "liftlock")
		if err := errors.Join(os.Chtimes(file, testDate, testDate), os.Chmod(file, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(once + "/*")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		name := filepath.Base(f)
		names = append(names, name)
		if !bytes.Equal(readFile(t, f), readFile(t, filepath.Join(again, name))) {
			t.Errorf("%s isn't the same again", name)
		}
	}
	want := []string{checksumsName, "liftlock-linux-amd64.cdx.json", "liftlock-linux-amd64.tar.gz", "liftlock-windows-arm64.cdx.json",
		"liftlock-windows-arm64.zip", "liftlock.krew.yaml", "liftlock.rb"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	checkSums(t, once, names)
	tarred := unpackTar(t, readFile(t, filepath.Join(once, "liftlock-linux-amd64.tar.gz")))
	zipped := unpackZip(t, readFile(t, filepath.Join(once, "liftlock-windows-arm64.zip")))
	for i := range zipped {
		zipped[i] = strings.Replace(zipped[i], "liftlock.exe", "liftlock", 1)
	}
	if diff := cmp.Diff(tarred, zipped); diff != "" {
		t.Errorf("the archives differ: %s", diff)
	}
	// Which commands there are, TestCommandFiles knows.
	notPages := slices.DeleteFunc(slices.Clone(tarred), func(f string) bool { return strings.Contains(f, " man/man1/liftlock-") })
	checkGolden(t, "testdata/archive.txt", strings.Join(notPages, "\n")+"\n")
}

// checkSums does as sha256sum -c.
func checkSums(t *testing.T, dir string, names []string) {
	t.Helper()
	var summed []string
	for line := range strings.Lines(string(readFile(t, filepath.Join(dir, checksumsName)))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		summed = append(summed, name)
		if got := checksum(readFile(t, filepath.Join(dir, name))); got != sum {
			t.Errorf("%s: its checksum is %s, not %s", name, got, sum)
		}
	}
	if want := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == checksumsName }); !slices.Equal(summed, want) {
		t.Errorf("there are checksums of %q, not of %q", summed, want)
	}
}

func describeFile(mode os.FileMode, date time.Time, name string) string {
	return fmt.Sprintf("%s %s %s", mode, date.UTC().Format(time.RFC3339), name)
}

func unpackTar(t *testing.T, content []byte) (out []string) {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if !plain.ModTime.IsZero() || plain.Name != "" {
		t.Errorf("the compressed file has a name, %q, or a time, %s", plain.Name, plain.ModTime)
	}
	archive := tar.NewReader(plain)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" {
			t.Errorf("%s belongs to %d %q", h.Name, h.Uid, h.Uname)
		}
		out = append(out, describeFile(h.FileInfo().Mode(), h.ModTime, h.Name))
	}
}

func unpackZip(t *testing.T, content []byte) (out []string) {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.File {
		out = append(out, describeFile(f.Mode(), f.Modified, f.Name))
	}
	return out
}

// TestRefusedPrograms holds that nothing is packed under a wrong name.
func TestRefusedPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *program, settings map[string]string, r *release)
		want   string
	}{
		"a good one":         {func(*program, map[string]string, *release) {}, ""},
		"another program":    {func(p *program, _ map[string]string, _ *release) { p.info.Path = "example.com/x" }, "it is example.com/x"},
		"another platform":   {func(_ *program, s map[string]string, _ *release) { s["GOARCH"] = "arm64" }, "it is for linux-arm64"},
		"linked with C":      {func(_ *program, s map[string]string, _ *release) { s["CGO_ENABLED"] = "1" }, "the system's C library"},
		"with its paths":     {func(_ *program, s map[string]string, _ *release) { delete(s, "-trimpath") }, "the paths of where it was built"},
		"of another commit":  {func(_ *program, _ map[string]string, r *release) { r.commit = "other" }, `of commit "other"`},
		"of another version": {func(_ *program, _ map[string]string, r *release) { r.version = "v2" }, `version "v2"`},
		"of no commit":       {func(_ *program, _ map[string]string, r *release) { r.commit = "" }, `of commit ""`},
	} {
		t.Run(name, func(t *testing.T) {
			p := program{platform: "linux-amd64", content: []byte("..." + testVersion + "..." + testCommit), info: &debug.BuildInfo{Path: mainPackage}}
			settings := map[string]string{"GOOS": "linux", "GOARCH": "amd64", "CGO_ENABLED": "0", "-trimpath": "true"}
			r := newRelease("")
			c.change(&p, settings, &r)
			for k, v := range settings {
				p.info.Settings = append(p.info.Settings, debug.BuildSetting{Key: k, Value: v})
			}
			switch err := checkProgram(p, r); {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := packRelease(newRelease(t.TempDir())); err == nil || !strings.Contains(err.Error(), "no program was built") {
		t.Errorf("a release of nothing: %v", err)
	}
}

// TestManifests holds the formula and the krew manifest.
func TestManifests(t *testing.T) {
	sums := map[string]string{}
	for i, p := range []string{"darwin-amd64", "darwin-arm64", "linux-amd64", "linux-arm64", "windows-amd64", "windows-arm64"} {
		sums[p] = strings.Repeat(fmt.Sprint(i+1), 64)
	}
	files, err := packageManifests(testVersion, sums)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		checkGolden(t, filepath.Join("testdata", f.name), string(f.content))
	}
	var plugin struct {
		Spec struct {
			Platforms []struct{ URI, SHA256, Bin string }
		}
	}
	if err := yaml.Unmarshal(files[0].content, &plugin); err != nil || len(plugin.Spec.Platforms) != len(sums) {
		t.Errorf("krew reads %+v: %v", plugin, err)
	}
	ruby, err := exec.LookPath("ruby")
	if err != nil {
		return // the formula's syntax is checked where Ruby is installed
	}
	if out, err := exec.CommandContext(t.Context(), ruby, "-c", "testdata/liftlock.rb").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestBill holds the bill of materials of this very test, which is linked from most of what the
// program is.
func TestBill(t *testing.T) {
	modules, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	r := newRelease("")
	r.modules = strings.TrimSpace(string(modules))
	bills, err := newBillWriter(r)
	if err != nil {
		t.Fatal(err)
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("this test has no build information")
	}
	f, err := bills.write(program{platform: "linux-amd64", content: []byte("program"), info: info})
	if err != nil {
		t.Fatal(err)
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(f.content), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if bom.SpecVersion != cyclonedx.SpecVersion1_6 || bom.SerialNumber != "" || bom.Metadata.Timestamp != testDate.Format(time.RFC3339) {
		t.Errorf("it is %s, %s, of %s", bom.SpecVersion, bom.SerialNumber, bom.Metadata.Timestamp)
	}
	refs := map[string]int{bom.Metadata.Component.BOMRef: 1}
	licensed, found := 0, map[string]string{}
	for _, c := range *bom.Components {
		refs[c.BOMRef]++
		if c.Licenses != nil {
			licensed++
			found[c.Name] = (*c.Licenses)[0].License.ID
		}
	}
	if want := len(info.Deps) + 1; len(*bom.Components) != want || len(refs) != want+1 || len(*(*bom.Dependencies)[0].Dependencies) != want {
		t.Errorf("%d modules were linked; it has %d, with %d names, and %d that the program depends on",
			want, len(*bom.Components), len(refs), len(*(*bom.Dependencies)[0].Dependencies))
	}
	if least := len(info.Deps) * 95 / 100; licensed < least {
		t.Errorf("the licenses of only %d modules are known, fewer than %d", licensed, least)
	}
	for name, want := range map[string]string{"github.com/spf13/cobra": "Apache-2.0", "gopkg.in/yaml.v3": "MIT", "std": "BSD-3-Clause", "go.uber.org/zap": "MIT"} {
		if found[name] != want {
			t.Errorf("%s is under %q, not %s", name, found[name], want)
		}
	}
	info.Deps = []*debug.Module{{Path: "example.com/x", Version: "v1.0.0"}}
	if _, err := bills.write(program{info: info}); err == nil || !strings.Contains(err.Error(), "no checksum") {
		t.Errorf("a module without a checksum: %v", err)
	}
	info.Deps[0].Sum = "h1:AAAA"
	if _, err := bills.write(program{info: info}); err == nil || !strings.Contains(err.Error(), "isn't in the module cache") {
		t.Errorf("a module that isn't there: %v", err)
	}
}

// TestCommandFiles holds that each command that help names has its page, which says nothing of
// where and when it was made.
func TestCommandFiles(t *testing.T) {
	files, err := commandFiles(cli.Root(), newRelease(""))
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, f := range files {
		pages[f.name] = string(f.content)
	}
	commands := 0
	for _, c := range cli.Root().Commands() {
		if name := "man/man1/liftlock-" + c.Name() + ".1"; c.Hidden == (pages[name] != "") {
			t.Errorf("%s: hidden is %t, and its page has %d bytes", name, c.Hidden, len(pages[name]))
		}
		commands++
	}
	if commands < 10 {
		t.Errorf("only %d commands", commands)
	}
	for _, want := range []string{`.TH "LIFTLOCK-SET" "1" "Nov 2026" "Liftlock v1.2.3" "Liftlock"`, `\fB--image\fP`} {
		if !strings.Contains(pages["man/man1/liftlock-set.1"], want) {
			t.Errorf("set's page lacks %s:\n%s", want, pages["man/man1/liftlock-set.1"])
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	places := regexp.MustCompile(regexp.QuoteMeta(home) + "/|" + regexp.QuoteMeta(here))
	for name, page := range pages {
		if place := places.FindString(page); place != "" {
			t.Errorf("%s says where it was made: %s", name, place)
		}
	}
	if runtime.GOOS == "linux" {
		if out, err := exec.CommandContext(t.Context(), "bash", "-n", "-c", pages["completions/liftlock.bash"]).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}

func readFile(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func checkGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(readFile(t, file)), got); diff != "" {
		t.Errorf("%s -want +got (go test ./deploy/dist -update writes it):\n%s", file, diff)
	}
}
