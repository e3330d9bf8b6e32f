package propose

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
)

// maxGuessed bounds how many values of a field are made out from folders.
const maxGuessed = 50

// guess guesses the meaning of fields that templates read. They are the repository's own address
// and branch where they are read as those, and the names of folders and files where a path is made
// of them.
func (ce *clusterExample) guess() {
	paths := map[string]bool{}
	for pass := range 2 { // what the first one finds may begin a path of the second
		for i := range ce.facts.Use.Reads {
			r := &ce.facts.Use.Reads[i]
			if pass == 0 {
				ce.guessSource(r)
			}
			if r.Field == "path" || r.Field == "valueFiles" {
				p := &pathGuess{ce, paths, pass}
				p.follow(r)
			}
		}
	}
}

// guessSource takes a field that is read alone as an address, or as a revision, for this repository's.
func (ce *clusterExample) guessSource(r *appset.ClusterRead) {
	if len(r.Parts) != 1 || r.Parts[0].Word == "" || len(ce.values[r.Parts[0].Word]) > 0 {
		return
	}
	word := r.Parts[0].Word
	switch r.Field {
	case "repoURL":
		if ce.facts.RepoURL != "" {
			ce.values[word], ce.guesses[word] = []string{ce.facts.RepoURL}, "this repository's address"
		}
	case "targetRevision", "revision":
		if ce.facts.Branch != "" {
			ce.values[word], ce.guesses[word] = []string{ce.facts.Branch}, "this repository's branch"
		}
	}
}

// pathGuess follows a path through the repository's folders.
type pathGuess struct {
	*clusterExample
	found map[string]bool // words whose values folders gave
	pass  int
}

// sharedFolders are names of folders that are no environment's and no cluster's.
var sharedFolders = []string{"base", "bases", "common", "components", "default", "defaults", "shared", "all", "global", "templates",
	"cluster", "clusters", "environments", "envs"}

// follow follows one text. A text that can't be followed any further is left.
func (p *pathGuess) follow(r *appset.ClusterRead) {
	parts := slices.Clone(r.Parts)
	if strings.HasPrefix(parts[0].Literal, "$") { // a file of the source that is called so
		_, rest, _ := strings.Cut(parts[0].Literal, "/")
		parts[0].Literal = rest
	} else if r.Field == "valueFiles" && !strings.HasPrefix(parts[0].Literal, "/") {
		return // from the folder of a chart
	}
	parts[0].Literal = strings.TrimPrefix(parts[0].Literal, "/")
	prefixes := []string{""}
	for i, part := range parts {
		switch {
		case part.Literal != "" && part.Word == "":
			if strings.ContainsAny(part.Literal, "*?[{") {
				return
			}
			for n := range prefixes {
				prefixes[n] += part.Literal
			}
		case part.Word == "path" || part.Word == "path.path" || strings.HasSuffix(part.Word, ".path.path"):
			return // a git generator's folder, of any depth
		case part.Word != "":
			after := ""
			if i+1 < len(parts) {
				after = parts[i+1].Literal
			}
			prefixes = p.extend(prefixes, part.Word, after, i+1 >= len(parts), i+2 >= len(parts))
		case i > 0 || r.Parts[0].Literal == "": // and not what is left of the first part
			return
		}
		if len(prefixes) == 0 {
			return
		}
	}
}

// extend gives the paths with a field's values after each. after is the text that follows in the
// template, last that nothing does, and ends that nothing follows that.
func (p *pathGuess) extend(prefixes []string, word, after string, last, ends bool) []string {
	if word == "nameNormalized" {
		word = nameWord
	}
	if known := p.values[word]; len(known) == 1 && p.guesses[word] != "" && p.pass > 0 {
		return withEach(prefixes, known)
	}
	if word == "server" || after == "" && !last {
		return nil
	}
	var values, out []string
	for _, prefix := range prefixes {
		for _, v := range p.candidates(prefix, after, ends) {
			values, out = appendNew(values, v), append(out, prefix+v)
		}
	}
	values = values[:min(len(values), maxGuessed)]
	known := len(p.values[word]) > 0
	if len(values) == 0 || known && !p.found[word] && strings.HasPrefix(word, annotationWord) {
		return withEach(prefixes, p.values[word])
	}
	if !known {
		p.guesses[word] = "after the folders here"
	}
	p.found[word] = true
	p.values[word] = appendNew(p.values[word], values...)
	return out[:min(len(out), maxGuessed)]
}

func withEach(prefixes, values []string) []string {
	var out []string
	for _, prefix := range prefixes {
		for _, v := range values {
			out = append(out, prefix+v)
		}
	}
	return out[:min(len(out), maxGuessed)]
}

// candidates are what may stand between a path's beginning and the text after it.
func (p *pathGuess) candidates(prefix, after string, ends bool) []string {
	folder, stem := path.Split(prefix)
	segment, rest, isFolder := strings.Cut(after, "/")
	if isFolder && stem == "" && segment != "" && !strings.ContainsAny(segment[:1], ".-_") {
		return p.beginnings(folder, after, ends)
	}
	entries, err := fs.ReadDir(p.facts.Tree, path.Clean("./"+folder))
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		v, hasStem := strings.CutPrefix(e.Name(), stem)
		v, hasSegment := strings.CutSuffix(v, segment)
		isLocation := e.IsDir() || !isFolder && segment != ""
		fits := hasStem && hasSegment && v != "" && isLocation
		if !fits || strings.HasPrefix(v, ".") || slices.Contains(sharedFolders, strings.ToLower(v)) {
			continue
		}
		if p.exists(path.Join(folder, e.Name(), definite(rest, ends))) {
			out = append(out, v)
		}
	}
	return out
}

// beginnings are what a path may begin with before the text after it: nothing, or a folder.
func (p *pathGuess) beginnings(folder, after string, ends bool) []string {
	at := definite(after, ends)
	if p.exists(path.Join(folder, at)) {
		return []string{""}
	}
	entries, err := fs.ReadDir(p.facts.Tree, path.Clean("./"+folder))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && p.exists(path.Join(folder, e.Name(), at)) {
			return []string{e.Name() + "/"}
		}
	}
	return nil
}

// definite is what of a text is whole folders and files: up to the last slash where something follows,
// or where a glob begins.
func definite(text string, ends bool) string {
	if i := strings.IndexAny(text, "*?[{"); i >= 0 {
		text, ends = text[:i], false
	}
	if !ends {
		text = text[:strings.LastIndex(text, "/")+1]
	}
	return text
}

func (p *pathGuess) exists(name string) bool {
	if name = path.Clean("./" + name); !fs.ValidPath(name) {
		return false
	}
	_, err := fs.Stat(p.facts.Tree, name)
	return err == nil
}
