package pipeline

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	maxSourceText   = 500 // bytes of the template
	maxRevisionText = 200 // bytes of a revision
	valueHolder     = "{{value}}"
	componentHolder = "{{component}}"
)

var (
	holderBlanks  = regexp.MustCompile(`\{\{\s*([a-z]+)\s*\}\}`)
	ownerName     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	repoName      = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	revisionNamed = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/+-]*$`)
)

// Source is the template that says where an application's own code is: a repository of the
// same forge, and the revision of it that a carried value was built from. Its zero value
// says nothing.
type Source struct{ owner, name, revision string }

// ParseSource reads owner/repository@revision, where the repository and the revision may
// have {{component}} and the revision {{value}}; without @ the revision is the value. The
// error says what is wrong with it.
func ParseSource(text string) (Source, error) {
	if len(text) > maxSourceText {
		return Source{}, fmt.Errorf("it is %d bytes long; at most %d", len(text), maxSourceText)
	}
	text = holderBlanks.ReplaceAllString(text, "{{$1}}")
	where, revision, has := strings.Cut(text, "@")
	if !has {
		revision = valueHolder
	}
	var s Source
	var both bool
	if s.owner, s.name, both = strings.Cut(where, "/"); !both || s.name == "" || s.owner == "" {
		return Source{}, fmt.Errorf("%q is not a repository; write owner/repository@revision, like acme/{{component}}@v{{value}}", text)
	}
	s.revision = revision
	for place, part := range map[string]string{"owner": s.owner, "repository": s.name, "revision": s.revision} {
		rest := part
		if place != "owner" {
			rest = strings.ReplaceAll(rest, componentHolder, "")
		}
		if place == "revision" {
			rest = strings.ReplaceAll(rest, valueHolder, "")
		}
		if strings.ContainsAny(rest, "{}") {
			return Source{}, fmt.Errorf("the %s %q has something between braces that isn't known there: only {{component}} in the "+
				"repository and the revision, and {{value}} in the revision", place, part)
		}
	}
	if !strings.Contains(s.revision, valueHolder) {
		return Source{}, fmt.Errorf("the revision %q is always the same: write {{value}} where the carried value goes", s.revision)
	}
	if !ownerName.MatchString(s.owner) || !isRepoName(strings.ReplaceAll(s.name, componentHolder, "x")) {
		return Source{}, fmt.Errorf("%q is not a repository; write owner/repository@revision, like acme/{{component}}@v{{value}}", text)
	}
	if !isRevision(strings.NewReplacer(componentHolder, "x", valueHolder, "1").Replace(s.revision)) {
		return Source{}, fmt.Errorf("the revision %q can't be a tag, a branch or a commit", s.revision)
	}
	return s, nil
}

// Repository is the repository of a component; false where its name can't be one.
func (s Source) Repository(component string) (owner, name string, ok bool) {
	name = strings.ReplaceAll(s.name, componentHolder, component)
	return s.owner, name, s.owner != "" && isRepoName(name)
}

// Revision is what a component's carried value was built from; false where that can't be
// the name of a tag, a branch or a commit.
func (s Source) Revision(component, value string) (string, bool) {
	revision := strings.NewReplacer(componentHolder, component, valueHolder, value).Replace(s.revision)
	return revision, value != "" && isRevision(revision)
}

func isRepoName(name string) bool {
	return repoName.MatchString(name) && strings.Trim(name, ".") != "" && len(name) <= maxRevisionText
}

// isRevision says that a text can be a revision's name, as git-check-ref-format has it,
// and can't be read as two.
func isRevision(text string) bool {
	if strings.HasSuffix(text, "/") || strings.HasSuffix(text, ".") || strings.HasSuffix(text, ".lock") {
		return false
	}
	if strings.Contains(text, "..") || strings.Contains(text, "//") {
		return false
	}
	return len(text) <= maxRevisionText && revisionNamed.MatchString(text)
}
