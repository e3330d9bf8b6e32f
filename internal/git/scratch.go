package git

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/proc"
)

// Scratch is a mirror in a temporary folder that reads a checkout's objects as its own. Writes go
// to the folder alone. So a working tree becomes a commit, and edits are tried out, while nothing
// in the checkout changes. It has the branches that SetBranches gives it, and no remote.
type Scratch struct {
	*Mirror
	*mirrorPrograms
	checkout    *Checkout
	sparseIndex bool // folders stand in the checkout's index for what they hold
}

// Scratch makes one. Close removes its folder.
func (c *Checkout) Scratch(ctx context.Context) (*Scratch, error) {
	fail := func(err error) (*Scratch, error) {
		return nil, &Error{Op: "make a scratch repository beside " + c.Dir(), Err: err}
	}
	parent, err := os.MkdirTemp("", "liftlock-scratch-")
	if err != nil {
		return fail(err)
	}
	p, err := newMirrorPrograms(ctx, Options{Dir: filepath.Join(parent, "git"), URL: c.dir,
		Author: Ident{Name: "liftlock", Email: "liftlock@localhost"}})
	if err != nil {
		return fail(errors.Join(err, os.RemoveAll(parent)))
	}
	m := newProgramsMirror(p, c.name, c.remedy)
	m.setHeads(map[string]string{})
	s := &Scratch{Mirror: m, mirrorPrograms: p, checkout: c}
	if err := s.fillFolder(); err != nil {
		return fail(errors.Join(err, s.Close()))
	}
	return s, nil
}

// Close ends the helper processes and removes the folder.
func (s *Scratch) Close() error {
	return errors.Join(s.Mirror.Close(), os.RemoveAll(filepath.Dir(s.dir)))
}

// SetBranches replaces the branches that the scratch repository has.
func (s *Scratch) SetBranches(heads map[string]string) { s.setHeads(heads) }

// fillFolder makes the folder a repository that borrows the checkout's objects,
// and takes over what says which files git ignores and where a shallow clone ends.
func (s *Scratch) fillFolder() error {
	common := s.checkout.dir
	if to, err := os.ReadFile(filepath.Join(common, "commondir")); err == nil { // a linked work tree
		text := strings.TrimRight(string(to), "\r\n")
		if !filepath.IsAbs(text) {
			text = filepath.Join(common, text)
		}
		common = text
	}
	common, err := filepath.Abs(common)
	if err != nil {
		return err
	}
	for _, dir := range []string{"objects/info", writtenObjects, "refs/heads", "info"} {
		if err := os.MkdirAll(filepath.Join(s.dir, dir), 0o700); err != nil {
			return err
		}
	}
	if err := s.writeConfig(s.dir); err != nil {
		return err
	}
	attributes, err := os.ReadFile(filepath.Join(common, "info", "attributes"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for name, text := range map[string]string{
		"HEAD":                    "ref: refs/heads/main\n",
		"objects/info/alternates": filepath.Join(common, "objects") + "\n" + filepath.Join(s.dir, writtenObjects) + "\n",
		// The last word on attributes: no filter is run, whoever configured it.
		"info/attributes": string(attributes) + "\n* -filter\n",
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	copies := map[string]string{filepath.Join(common, "info", "exclude"): "info/exclude", filepath.Join(common, "shallow"): "shallow",
		filepath.Join(s.checkout.dir, "index"): "index"}
	shared, err := filepath.Glob(filepath.Join(escapeGlob(s.checkout.dir), "sharedindex.*")) // of a split index
	if err != nil {
		return err
	}
	for _, name := range shared {
		copies[name] = filepath.Base(name)
	}
	for from, to := range copies {
		data, err := copyWithTime(from, filepath.Join(s.dir, to))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		s.sparseIndex = s.sparseIndex || to == "index" && bytes.Contains(data, []byte("sdir"))
	}
	return nil
}

// copyWithTime copies a file and gives its content. The copy is as old as the file. A file that was
// changed in the instant in which the index was written looks unchanged by its times. git reads it
// again only where the index is no newer (Documentation/technical/racy-git).
func copyWithTime(from, to string) ([]byte, error) {
	f, err := os.Open(from)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		return nil, err
	}
	return data, os.Chtimes(to, info.ModTime(), info.ModTime())
}

// writtenObjects is the folder of the objects that a working tree's index and trees
// are written to. It sees no others: of one that is there already git would say
// on the file that it was used, in the checkout.
const writtenObjects = "written"

// escapeGlob makes a pattern that matches one path only.
func escapeGlob(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}

// CommitWorkingTree gives the commit that a commit of everything in the checkout's working tree
// would be: all files that git tracks or doesn't ignore. Their content is what is on disk now,
// converted as git converts it, but for filters, which are not run. It is HEAD itself where that is
// the same. Its parent is HEAD, and it is made at the given time.
//
// Files that a sparse checkout leaves out are as in the index. So are a submodule, and a tracked
// file of more than MaxFileSize, which nothing reads; an untracked one is left out. It is
// ErrInvalid when there is no working tree.
func (s *Scratch) CommitWorkingTree(ctx context.Context, at time.Time) (string, error) {
	op := "read the working tree of " + s.checkout.Dir()
	if s.checkout.Bare() {
		return "", &Error{Op: op, Kind: ErrInvalid, Hint: "this repository is bare: name a revision"}
	}
	head, headErr := "", error(nil)
	var wg sync.WaitGroup // a git of its own, which starts in about the time that it needs
	wg.Go(func() { head, headErr = s.checkout.Resolve(ctx, "HEAD") })
	settings, err := s.conversions(ctx)
	var changed []byte
	if err == nil {
		changed, err = s.runGit(ctx, s.onWorkingTree(settings, "ls-files", "-z", "-t", "--stage", "--modified", "--deleted", "--others",
			"--exclude-standard"))
	}
	wg.Wait()
	switch {
	case err != nil:
		return "", s.localError(op, err)
	case headErr != nil && !errors.Is(headErr, ErrUnknownCommit): // nothing may have been committed yet
		return "", headErr
	}
	gone, there := s.toUpdate(string(changed))
	for i, paths := range [][]string{gone, there} {
		if len(paths) == 0 {
			continue
		}
		update := s.writing(settings, "update-index", "-z", []string{"--force-remove", "--add"}[i], "--remove", "--replace", "--stdin")
		update.Stdin = []byte(strings.Join(paths, "\x00") + "\x00")
		if _, err := s.runGit(ctx, update); err != nil {
			return "", s.localError(op, err)
		}
	}
	out, err := s.runGit(ctx, s.writing(settings, "write-tree", "--missing-ok"))
	if err != nil {
		return "", s.localError(op, err)
	}
	return s.commitTree(ctx, head, strings.TrimSpace(string(out)), at)
}

// commitTree makes a commit of a tree on top of another, if there is one.
func (s *Scratch) commitTree(ctx context.Context, head, tree string, at time.Time) (string, error) {
	args := []string{"commit-tree", "-m", "The working tree"}
	if head != "" {
		same, err := s.programs.findObject(head + "^{tree}")
		if err == nil && same.sha == tree {
			return head, nil
		}
		args = append(args, "-p", head)
	}
	c := s.gitCommand(append(args, tree)...)
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		c.Env = append(slices.Clip(c.Env), "GIT_"+who+"_NAME="+s.opts.Author.Name, "GIT_"+who+"_EMAIL="+s.opts.Author.Email,
			fmt.Sprintf("GIT_%s_DATE=%d +0000", who, at.Unix()))
	}
	out, err := s.runGit(ctx, c)
	if err != nil {
		return "", s.localError("write a commit of the working tree of "+s.checkout.Dir(), err)
	}
	sha := strings.TrimSpace(string(out))
	return sha, checkSHA(sha)
}

// conversions are the checkout's settings, its user's among them, that say what a
// file on disk is in Git, and which files are none.
func (s *Scratch) conversions(ctx context.Context) ([]string, error) {
	out, err := s.runGit(ctx, s.checkout.gitCommand("config", "--null", "--get-regexp",
		`^core\.(autocrlf|eol|filemode|symlinks|ignorecase|precomposeunicode|excludesfile|attributesfile|sparsecheckout|sparsecheckoutcone|checkstat|trustctime)$`))
	if err != nil && exitCode(err) != 1 {
		return nil, err
	}
	args := []string{"-c", "core.safecrlf=false"}
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if key, value, ok := strings.Cut(entry, "\n"); ok {
			args = append(args, "-c", key+"="+value)
		}
	}
	return args, nil
}

// onWorkingTree is a git command over the checkout's files and the scratch
// repository's index.
func (s *Scratch) onWorkingTree(settings []string, args ...string) proc.Command {
	c := s.checkout.gitCommand(args...)
	c.Args = slices.Concat([]string{"--git-dir=" + s.dir, "--work-tree=" + s.checkout.top}, c.Args[1:len(c.Args)-len(args)], settings, args)
	c.Dir = s.checkout.top
	return c
}

// writing is onWorkingTree for a command that writes objects.
func (s *Scratch) writing(settings []string, args ...string) proc.Command {
	c := s.onWorkingTree(settings, args...)
	c.Env = append(slices.Clip(c.Env), "GIT_OBJECT_DIRECTORY="+filepath.Join(s.dir, writtenObjects))
	if s.sparseIndex { // only with the folders that it leaves out can it be written again
		c.Env = append(c.Env, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+filepath.Join(s.dir, "objects"))
	}
	return c
}

// toUpdate picks the paths with which the index is brought up to date. list has "H 100644 <id>
// 0\tpath\0" for a file in the index, the same with another letter where the file differs, and "?
// path\0" for a file that isn't in it.
func (s *Scratch) toUpdate(list string) (gone, there []string) {
	links := map[string]bool{} // folders: whether they are symbolic links, behind which git doesn't look
	for line := range strings.SplitSeq(list, "\x00") {
		head, name, known := strings.Cut(line, "\t")
		tag, mode, blob := "?", "", ""
		if f := strings.Fields(head); known && len(f) == 4 {
			tag, mode, blob = f[0], f[1], f[2]
		} else {
			name = strings.TrimPrefix(line, "? ")
		}
		switch {
		case strings.ContainsAny(tag, "HS"): // in the index, or only there; once more where it differs
			continue
		case !validName(name), mode == Submodule.String(): // a repository of its own ends in a slash
			continue
		}
		info, err := os.Lstat(filepath.Join(s.checkout.top, filepath.FromSlash(name)))
		switch {
		case err != nil, info.IsDir(), s.isBehindLink(name, links):
			gone = append(gone, name)
		case info.Mode().IsRegular() && (info.Size() > MaxFileSize || s.isStoredByLFS(name, blob)):
		default:
			there = append(there, name)
		}
	}
	return gone, there
}

func (s *Scratch) isBehindLink(name string, links map[string]bool) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		link, known := links[dir]
		if !known {
			info, err := os.Lstat(filepath.Join(s.checkout.top, filepath.FromSlash(dir)))
			link = err == nil && info.Mode()&fs.ModeSymlink != 0
			links[dir] = link
		}
		if link {
			return true
		}
	}
	return false
}

// maxPointer is the longest file that Git LFS takes for one of its pointers.
const maxPointer = 1024

// isStoredByLFS says that the stored object is the Git LFS pointer to what is on
// disk, which Git LFS's own filter would tell.
func (s *Scratch) isStoredByLFS(name, blob string) bool {
	if blob == "" {
		return false
	}
	info, err := s.programs.findObject(blob)
	if err != nil || info.size >= maxPointer {
		return false
	}
	o, err := s.programs.readObject(blob)
	if err != nil || !bytes.HasPrefix(o.data, []byte("version https://git-lfs.github.com/spec/")) {
		return false
	}
	data, err := os.ReadFile(filepath.Join(s.checkout.top, filepath.FromSlash(name)))
	if err != nil {
		return false
	}
	sum := sha256.Sum256(data)
	return strings.Contains(string(o.data), "\noid sha256:"+hex.EncodeToString(sum[:])+"\n")
}
