// Command dist packs the programs that make dist has built: an archive for each platform, with
// completions and man pages, its bill of materials, a Homebrew formula and a krew manifest, and
// the checksums of all. The same programs give the same bytes, wherever and whenever.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/cli"
)

// checksumsName is the file of checksums, as sha256sum -c takes it.
const checksumsName = "SHA256SUMS"

// release is what is packed.
type release struct {
	programs string // a folder GOOS-GOARCH for each platform
	modules  string // Go's module cache: where the texts of licenses are
	license  string // our own
	version  string
	commit   string
	date     time.Time // the commit's
}

func main() {
	var r release
	var out, date string
	flag.StringVar(&r.programs, "programs", "", "the folder with a folder GOOS-GOARCH for each platform")
	flag.StringVar(&r.modules, "modules", "", "Go's module cache (go env GOMODCACHE)")
	flag.StringVar(&r.license, "license", "LICENSE", "our license")
	flag.StringVar(&r.version, "version", "", "which version this is")
	flag.StringVar(&r.commit, "commit", "", "which commit this is")
	flag.StringVar(&date, "date", "", "when the commit was made, as RFC 3339 has it")
	flag.StringVar(&out, "out", "dist", "the folder to write to; it is emptied first")
	flag.Parse()
	var err error
	if r.date, err = time.Parse(time.RFC3339, date); err == nil {
		err = writeRelease(r, out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dist: "+err.Error())
		os.Exit(1)
	}
}

// writeRelease writes all files of a release to a folder.
func writeRelease(r release, out string) error {
	files, err := packRelease(r)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(out, f.name), f.content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// packRelease makes all files of a release.
func packRelease(r release) ([]file, error) {
	programs, err := readPrograms(r)
	if err != nil {
		return nil, err
	}
	beside, err := commandFiles(cli.Root(), r)
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(r.license)
	if err != nil {
		return nil, err
	}
	beside = append(beside, file{name: "LICENSE", content: license})
	bills, err := newBillWriter(r)
	if err != nil {
		return nil, err
	}
	var out []file
	sums := map[string]string{} // of archives, by platform
	for _, p := range programs {
		archive, err := packArchive(p, beside, r.date)
		if err != nil {
			return nil, err
		}
		bill, err := bills.write(p)
		if err != nil {
			return nil, fmt.Errorf("the bill of materials of %s: %w", p.platform, err)
		}
		sums[p.platform] = checksum(archive.content)
		out = append(out, archive, bill)
	}
	manifests, err := packageManifests(r.version, sums)
	if err != nil {
		return nil, err
	}
	out = append(out, manifests...)
	return append(out, listChecksums(out)), nil
}

// file is one that is written, or one in an archive.
type file struct {
	name    string // with slashes
	content []byte
	program bool // it can be run
}

func checksum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func listChecksums(files []file) file {
	var lines []string
	for _, f := range files {
		lines = append(lines, f.name+"\x00"+checksum(f.content))
	}
	slices.Sort(lines)
	var b bytes.Buffer
	for _, l := range lines {
		name, sum, _ := strings.Cut(l, "\x00")
		fmt.Fprintf(&b, "%s  %s\n", sum, name)
	}
	return file{name: checksumsName, content: b.Bytes()}
}
