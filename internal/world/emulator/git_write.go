package emulator

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// commitSpec is one commit to make on a branch.
type commitSpec struct {
	Branch  string
	From    string // the commit it starts from; empty: a commit without parents
	Author  gitIdent
	Message string
	Write   map[string]string // path → content
	Remove  []string
}

// commitFiles makes the commit and moves the branch, in one command and without
// a work tree. A branch that isn't at From any more stays as it is: an error.
func (b *bareRepo) commitFiles(c commitSpec) (string, error) {
	if err := validatePaths(c); err != nil {
		return "", err
	}
	var s bytes.Buffer
	stamp := fmt.Sprintf("%s <%s> %d +0000\n", c.Author.Name, c.Author.Email, c.Author.When.Unix())
	fmt.Fprintf(&s, "feature done\ncommit refs/heads/%s\nauthor %scommitter %s", c.Branch, stamp, stamp)
	writeDataCommand(&s, c.Message)
	if c.From != "" {
		fmt.Fprintf(&s, "from %s\n", c.From)
	}
	for _, path := range c.Remove {
		fmt.Fprintf(&s, "D %s\n", quotePath(path))
	}
	for _, path := range sortedKeys(c.Write) {
		fmt.Fprintf(&s, "M 100644 inline %s\n", quotePath(path))
		writeDataCommand(&s, c.Write[path])
	}
	s.WriteString("done\n")
	if _, err := b.runIn(b.dir, s.Bytes(), nil, "fast-import", "--quiet", "--done", "--date-format=raw"); err != nil {
		return "", err
	}
	return b.resolveRevision("refs/heads/" + c.Branch)
}

func writeDataCommand(s *bytes.Buffer, text string) {
	s.WriteString("data " + strconv.Itoa(len(text)) + "\n" + text + "\n")
}

// validatePaths refuses what Git itself refuses only half-way, or would take as a
// command of fast-import.
func validatePaths(c commitSpec) error {
	for _, path := range append(sortedKeys(c.Write), c.Remove...) {
		if path == "" || strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") ||
			slices.Contains(strings.Split(path, "/"), "..") {
			return fmt.Errorf("%q is not a path inside a repository", path)
		}
	}
	if strings.ContainsAny(c.Branch, " \n~^:?*[\\") || c.Branch == "" {
		return fmt.Errorf("%q is not a branch name", c.Branch)
	}
	if strings.ContainsAny(c.Author.Name+c.Author.Email, "<>\n") {
		return fmt.Errorf("the author's name or address can't be written in a commit")
	}
	return nil
}

// quotePath is fast-import's C-style quoting.
func quotePath(path string) string {
	r := strings.NewReplacer("\\", "\\\\", "\"", "\\\"", "\n", "\\n")
	return `"` + r.Replace(path) + `"`
}

// rebaseCommits replays commits (oldest first) onto a commit and gives the new tip;
// clean is false when one of them doesn't apply. Committer is the one who rebases.
func (b *bareRepo) rebaseCommits(commits []string, onto string, committer gitIdent) (tip string, clean bool, err error) {
	tip = onto
	for _, sha := range commits {
		c, err := b.readCommit(sha)
		if err != nil {
			return "", false, err
		}
		if len(c.Parents) != 1 {
			continue // a rebase leaves merges out
		}
		// merge-tree takes the merge base from history, so the new tip is
		// shown to it as a child of the old parent: a cherry-pick.
		tree, err := b.objectID(tip, "")
		if err != nil {
			return "", false, err
		}
		grafted, err := b.commitTree(tree, c.Parents, committer, committer, "stand-in\n")
		if err != nil {
			return "", false, err
		}
		merged, clean, err := b.mergeTree(grafted, sha)
		if err != nil || !clean {
			return "", false, err
		}
		if tip, err = b.commitTree(merged, []string{tip}, c.Author, committer, c.Message+"\n"); err != nil {
			return "", false, err
		}
	}
	return tip, true, nil
}
