package pipeline

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxBranchLength bounds a branch's name, in bytes.
const maxBranchLength = 200

// ownBranches are the beginnings of the names of Liftlock's own branches.
var ownBranches = []string{"liftlock/", "liftlock-revert/", "liftlock-state"}

// ValidBranch says why an environment can't live on a branch of this name, nil
// when it can. The rules are git's (git help check-ref-format), and that it is
// none of Liftlock's own.
func ValidBranch(name string) error {
	switch {
	case name == "":
		return errors.New("a branch is missing")
	case strings.HasPrefix(name, "refs/heads/"):
		return errors.New("write the branch without refs/heads/")
	case len(name) > maxBranchLength || !utf8.ValidString(name):
		return errors.New("a branch's name is UTF-8, and at most 200 bytes long")
	case strings.HasPrefix(name, "-") || name == "HEAD" || name == "@" || strings.HasPrefix(name, "refs/"):
		return errors.New("that can't be the name of a branch")
	case strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.HasSuffix(name, "."):
		return errors.New("a branch's name has no '..' and no '@{', and no '.' at its end")
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`~^:?*[\`, r) }):
		return errors.New(`a branch's name has no spaces, no control characters and none of ~^:?*[\`)
	case slices.ContainsFunc(ownBranches, func(own string) bool { return strings.HasPrefix(name, own) }):
		return errors.New("that is a name of Liftlock's own branches; take another")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return errors.New("between its slashes a branch's name has something that neither begins with '.' nor ends in '.lock'")
		}
	}
	return nil
}

// checkBranch checks the branch of one environment: there is one with layout:
// branches only, and no two environments share it, because then one pull request
// would change both.
func (c *checker) checkBranch(at string, i int, s *Spec) {
	e := &s.Environments[i]
	key := at + ".branch"
	if s.Layout != LayoutBranches {
		if e.Branch != "" || c.Doc.Has(key) {
			c.Errorf(key, "is for layout: branches; remove it, or set spec.layout: branches")
		}
		return
	}
	if !c.Doc.Has(key) {
		c.Errorf(at, "with layout: branches every environment needs its `branch`, such as env/%s", e.Name)
		return
	}
	if err := ValidBranch(e.Branch); err != nil {
		c.Errorf(key, "%q: %s", e.Branch, err)
		return
	}
	for j := range i {
		switch other := s.Environments[j].Branch; {
		case other == e.Branch:
			c.Errorf(key, "%q is the branch of spec.environments[%d] already: a pull request to it would change both environments; give "+
				"each its own", e.Branch, j)
			return
		case strings.HasPrefix(other, e.Branch+"/"), strings.HasPrefix(e.Branch, other+"/") && other != "":
			c.Errorf(key, "Git can't have both %q and %q, the branch of spec.environments[%d]; rename one", e.Branch, other, j)
			return
		}
	}
}
