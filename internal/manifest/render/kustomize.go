package render

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

// openAPILock guards the OpenAPI schema that kustomize keeps in one variable for the whole process,
// and leaves there: builds that bring a schema run alone.
//
// It also guards schemaParsed. kustomize parses its built-in schema when a build first asks for it,
// under a lock of its own. openapi.IsNamespaceScoped, with which another build asks about a kind
// that Kubernetes doesn't have, doesn't take that lock (kyaml 0.17). So builds may only run side by
// side once the schema is parsed.
var (
	openAPILock  sync.RWMutex // global, as what it guards is
	schemaParsed bool
	sharedBuilds atomic.Int32 // under way or waiting
)

// errOwnSchema stops a build that turns out to bring an OpenAPI schema.
var errOwnSchema = errors.New("the kustomization brings an OpenAPI schema")

// renderKustomize renders a kustomization with the Application's options.
func (r *rendering) renderKustomize(dir string, o *kustomizeOptions, env buildEnv) error {
	k := &kustomizeFS{files: r.files, edited: map[string][]byte{}, externals: map[string]*treeReader{}, mounted: map[string]string{},
		external: func(e External) *treeReader { return r.trees[e.key()] }}
	if err := k.applyOptions(dir, o, env); err != nil {
		return err
	}
	out, err := k.buildShared(dir)
	if errors.Is(err, errOwnSchema) {
		out, err = k.buildExclusive(dir)
	}
	if err != nil {
		return err
	}
	return r.out.addYAML(out)
}

// buildShared builds beside other builds, unless a schema comes along. A build that runs alone
// needn't pay for parsing the built-in schema (a fifth of a second).
func (k *kustomizeFS) buildShared(dir string) ([]byte, error) {
	alone := sharedBuilds.Add(1) == 1
	defer sharedBuilds.Add(-1)
	k.exclusive = false
	for {
		openAPILock.RLock()
		if schemaParsed {
			defer openAPILock.RUnlock()
			return k.build(dir)
		}
		openAPILock.RUnlock()
		openAPILock.Lock()
		if alone {
			defer openAPILock.Unlock()
			return k.build(dir)
		}
		openapi.Schema()
		schemaParsed = true
		openAPILock.Unlock()
	}
}

// buildExclusive builds with a schema of its own, which is gone afterwards.
func (k *kustomizeFS) buildExclusive(dir string) ([]byte, error) {
	openAPILock.Lock()
	defer openAPILock.Unlock()
	defer resetSchema()
	k.exclusive, k.fatalErr, k.kustomizationCount = true, nil, 0
	return k.build(dir)
}

// resetSchema drops the schema; the caller holds openAPILock.
func resetSchema() {
	openapi.ResetOpenAPI()
	schemaParsed = false
}

func (k *kustomizeFS) build(dir string) ([]byte, error) {
	// The default options: files of a kustomization lie in or below its
	// folder, no plugins but the built-in ones, no Helm.
	m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(k, path.Join(mountPoint, dir))
	if k.fatalErr != nil {
		return nil, k.fatalErr
	}
	if err != nil {
		return nil, &clippedError{text: "kustomize: " + strings.ReplaceAll(strings.ReplaceAll(err.Error(), mountPoint+"/", ""), mountPoint,
			"."), err: err}
	}
	out, err := m.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("kustomize: writing the objects: %w", err)
	}
	return out, nil
}
