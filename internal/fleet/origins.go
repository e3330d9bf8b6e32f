package fleet

import (
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argoproj/argo-cd/v2/applicationset/generators"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// origins remembers which of this commit's generator files each set of
// parameters came of. Parameters don't say it themselves: those of two files
// may have been combined or merged, and any generator may give a path and a
// file name. It is one generation's.
type origins struct {
	// By the map's address, which is the map's own for as long as it is held
	// here.
	by map[uintptr]origin
	// marked are the parameters that merges got copies of, by file.
	marked map[string][]map[string]any
}

type origin struct {
	params map[string]any
	files  []string // sorted
}

func newOrigins() *origins {
	return &origins{by: map[uintptr]origin{}, marked: map[string][]map[string]any{}}
}

func address(params map[string]any) uintptr { return reflect.ValueOf(params).Pointer() }

func (o *origins) note(params map[string]any, files []string) {
	if params != nil && len(files) > 0 {
		o.by[address(params)] = origin{params, files}
	}
}

// of are the files that parameters came of, sorted.
func (o *origins) of(params map[string]any) []string {
	return o.by[address(params)].files
}

// join notes that parameters are a combination of others.
func (o *origins) join(params, a, b map[string]any) {
	files, more := o.of(a), o.of(b)
	switch {
	case len(files) == 0:
		files = more
	case len(more) > 0:
		files = unique(slices.Concat(files, more))
	}
	o.note(params, files)
}

// originKey begins the keys that say inside a merge, where parameters are
// copied and written into, which files they came of. A NUL is in no path,
// and nobody's parameter begins with one.
const originKey = "\x00file:"

// copies are a file's parameters for a merge, which writes into what it gets.
func (o *origins) copies(params []map[string]any, file string) []map[string]any {
	o.marked[file] = params
	out := copyParams(params)
	for _, p := range out {
		p[originKey+file] = ""
	}
	return out
}

// maxAlike bounds how many sets of parameters of one file are compared with
// each of the merged ones.
const maxAlike = 8

// unmark takes the marks from merged parameters, which nobody writes into any
// more: what is as it was in a file's own is shared with them again.
func (o *origins) unmark(params map[string]any) {
	var files []string
	for key := range params {
		if file, marked := strings.CutPrefix(key, originKey); marked {
			files = append(files, file)
			delete(params, key)
		}
	}
	slices.Sort(files)
	for _, file := range files {
		if len(o.marked[file]) > maxAlike {
			continue
		}
		for _, own := range o.marked[file] {
			for key, value := range params {
				if old, there := own[key]; there && isTree(value) && equalValues(value, old) {
					params[key] = old
				}
			}
		}
	}
	o.note(params, files)
}

func isTree(v any) bool {
	_, list := v.([]any)
	return list || isMap(v)
}

// unmarked is parameters without the marks, which templates must not see.
func unmarked(params map[string]any) map[string]any {
	out := make(map[string]any, len(params))
	for key, value := range params {
		if !strings.HasPrefix(key, originKey) {
			out[key] = value
		}
	}
	return out
}

// remarked gives parameters the marks of others.
func remarked(params, like map[string]any) map[string]any {
	for key, value := range like {
		if strings.HasPrefix(key, originKey) {
			params[key] = value
		}
	}
	return params
}

// mergeGenerator is the library's merge generator, at the outermost of merges
// in each other: it takes the marks away.
type mergeGenerator struct {
	generators.Generator
	origins *origins
}

// GenerateParams gives the merged parameters, in random order.
func (g *mergeGenerator) GenerateParams(spec *argov1alpha1.ApplicationSetGenerator, set *argov1alpha1.ApplicationSet, c client.Client) ([]map[string]any, error) {
	out, err := g.Generator.GenerateParams(spec, set, c)
	if err != nil {
		return nil, err
	}
	for _, params := range out {
		g.origins.unmark(params)
	}
	return out, nil
}
