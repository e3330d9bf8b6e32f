package people

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/hmarr/codeowners"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// giteaForge is the type of forge whose CODEOWNERS is of regular expressions.
const giteaForge = "gitea"

// gitlabForge is the type of forge whose CODEOWNERS has sections, which aren't read yet.
const gitlabForge = "gitlab"

// Bounds on what is read of the file, and of what it says.
const (
	maxCodeowners   = 1 << 20 // bytes; GitHub's own bound is 3 MB
	maxOwnersLine   = 4000    // bytes
	maxOwnerRules   = 5000
	maxOwnedFiles   = 1000    // changed files that are looked up
	maxOwnerMatches = 200_000 // rules times files: about two seconds at worst
	maxOwnerPattern = 2000    // instructions of a regular expression
	maxFileOwners   = 50      // of one rule
	maxOwnersError  = 300
)

// errNoCodeowners says that a branch has no CODEOWNERS.
var errNoCodeowners = errors.New("the branch has no CODEOWNERS")

// ownerRules are what a CODEOWNERS says.
type ownerRules struct {
	rules []ownerRule
	// all: every rule that matches a file is about it; otherwise the last one.
	all bool
}

type ownerRule struct {
	matches func(path string) (bool, error)
	owners  []string // logins and teams as policies have them; addresses as they are
}

// readCodeowners reads a tree's CODEOWNERS as a type of forge does.
func readCodeowners(tree fs.FS, forgeType string) (ownerRules, error) {
	files := forge.CodeownersFiles(forgeType)
	for _, name := range files {
		info, err := fs.Stat(tree, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return ownerRules{}, fmt.Errorf("look at %s: %w", name, err)
		}
		if info.IsDir() {
			continue
		}
		if info.Size() > maxCodeowners {
			return ownerRules{}, fmt.Errorf("%s is larger than %d bytes", name, maxCodeowners)
		}
		raw, err := fs.ReadFile(tree, name)
		if err != nil {
			return ownerRules{}, fmt.Errorf("read %s: %w", name, err)
		}
		rules, err := parseCodeowners(raw, forgeType)
		if err != nil {
			return ownerRules{}, fmt.Errorf("read %s: %w", name, err)
		}
		return rules, nil
	}
	return ownerRules{}, fmt.Errorf("%w (%s)", errNoCodeowners, strings.Join(files, ", "))
}

// parseCodeowners reads the rules; a line that isn't understood is an error, because it
// may be the one that counts.
func parseCodeowners(raw []byte, forgeType string) (ownerRules, error) {
	lines := bytes.Split(raw, []byte{'\n'})
	rules := 0
	for i, line := range lines {
		if len(line) > maxOwnersLine {
			return ownerRules{}, fmt.Errorf("line %d is longer than %d bytes", i+1, maxOwnersLine)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			rules++
		}
	}
	if rules > maxOwnerRules {
		return ownerRules{}, fmt.Errorf("it has %d rules, more than %d", rules, maxOwnerRules)
	}
	switch forgeType {
	case giteaForge:
		return parseGiteaOwners(lines)
	case gitlabForge: // read as GitHub's, a section would be a rule and its approvals forgotten
		return ownerRules{}, errors.New("the owners that GitLab reads in it aren't read yet; name the owners in users or teams")
	}
	parsed, err := codeowners.ParseFile(bytes.NewReader(raw))
	if err != nil {
		return ownerRules{}, errors.New(wording.ClipLine(err.Error(), maxOwnersError))
	}
	var out ownerRules
	for i := range parsed {
		rule := ownerRule{matches: parsed[i].Match}
		for _, owner := range parsed[i].Owners {
			rule.owners = append(rule.owners, strings.TrimPrefix(owner.String(), "@"))
		}
		out.rules = append(out.rules, rule)
	}
	return out, nil
}

// parseGiteaOwners reads rules as Gitea does: a regular expression for the whole path, with
// a ! in front for all paths but those, and its owners. Every rule that matches is about
// the file, whatever comes later. What Gitea leaves out with a warning is an error here.
func parseGiteaOwners(lines [][]byte) (ownerRules, error) {
	out := ownerRules{all: true}
	for i, line := range lines {
		words := splitGiteaLine(string(line))
		if len(words) == 0 {
			continue
		}
		rule, err := newGiteaRule(words)
		if err != nil {
			return ownerRules{}, fmt.Errorf("line %d: %s", i+1, wording.ClipLine(err.Error(), maxOwnersError))
		}
		out.rules = append(out.rules, rule)
	}
	return out, nil
}

// splitGiteaLine splits a line at its spaces. A backslash takes the meaning of what comes
// after it, also of a backslash; a # without one begins a comment.
func splitGiteaLine(line string) (words []string) {
	var word strings.Builder
	escaped := false
	end := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	for _, r := range strings.TrimSpace(line) {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\':
			escaped = true
		case r == '#':
			end()
			return words
		case r == ' ' || r == '\t':
			end()
		default:
			word.WriteRune(r)
		}
	}
	end()
	return words
}

func newGiteaRule(words []string) (rule ownerRule, err error) {
	if len(words) < 2 {
		return rule, errors.New("it names no owner")
	}
	pattern, isNegative := strings.CutPrefix(words[0], "!")
	expression := "^" + pattern + "$" // not of a group, as Gitea has it
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return rule, fmt.Errorf("its regular expression: %w", err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return rule, fmt.Errorf("its regular expression: %w", err)
	}
	if len(program.Inst) > maxOwnerPattern {
		return rule, errors.New("its regular expression is too large")
	}
	compiled, err := regexp.Compile(expression)
	if err != nil {
		return rule, fmt.Errorf("its regular expression: %w", err)
	}
	rule.matches = func(path string) (bool, error) { return compiled.MatchString(path) != isNegative, nil }
	for _, word := range words[1:] {
		owner := strings.TrimPrefix(word, "@")
		if _, _, err := policies.ParseTeam(owner); err != nil && policies.CheckLogin(owner) != nil {
			return rule, fmt.Errorf("%q is neither an account nor a team", word)
		}
		rule.owners = append(rule.owners, owner)
	}
	return rule, nil
}

// findOwners says who owns files: by the last rule that matches each, or, where all count, each
// file once for each rule. Owners by address have no account and match no reviewer.
func (o *ownerRules) findOwners(paths []string) ([]policies.OwnedFile, error) {
	if len(paths) > maxOwnedFiles {
		return nil, fmt.Errorf("%d files are changed, more than are looked up", len(paths))
	}
	if n := len(paths) * len(o.rules); n > maxOwnerMatches {
		return nil, fmt.Errorf("%d files are changed and CODEOWNERS has %d rules: more than %d comparisons aren't made", len(paths),
			len(o.rules), maxOwnerMatches)
	}
	out := make([]policies.OwnedFile, 0, len(paths))
	for _, path := range paths {
		isOwned := false
		for i := len(o.rules) - 1; i >= 0 && (o.all || !isOwned); i-- {
			rule := &o.rules[i]
			is, err := rule.matches(path)
			if err != nil {
				return nil, fmt.Errorf("find the owners of %s: %s", wording.ClipLine(path, maxOwnersError),
					wording.ClipLine(err.Error(), maxOwnersError))
			}
			if !is {
				continue
			}
			isOwned = true
			file := policies.OwnedFile{Path: path, Owners: slices.Clone(rule.owners[:min(len(rule.owners), maxFileOwners)])}
			if len(out) == 0 || out[len(out)-1].Path != path || !slices.Equal(out[len(out)-1].Owners, file.Owners) {
				out = append(out, file)
			}
		}
		if !isOwned {
			out = append(out, policies.OwnedFile{Path: path})
		}
		if len(out) > maxOwnedFiles*10 {
			return nil, errors.New("too many rules of CODEOWNERS are about the changed files")
		}
	}
	return out, nil
}
