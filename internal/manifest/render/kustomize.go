package render

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

// openAPILock guards the OpenAPI schema that kustomize keeps in one variable for
// the whole process, and leaves there: builds that bring a schema run alone.
var openAPILock sync.RWMutex // global, as what it guards is

// errOwnSchema stops a build that turns out to bring an OpenAPI schema.
var errOwnSchema = errors.New("the kustomization brings an OpenAPI schema")

// renderKustomize renders a kustomization with the Application's options.
func (r *rendering) renderKustomize(dir string, o *kustomizeOptions, env buildEnv) error {
	k := &kustomizeFS{files: r.files, edited: map[string][]byte{}}
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

// buildShared builds beside other builds, unless a schema comes along.
func (k *kustomizeFS) buildShared(dir string) ([]byte, error) {
	openAPILock.RLock()
	defer openAPILock.RUnlock()
	k.exclusive = false
	return k.build(dir)
}

// buildExclusive builds with a schema of its own, which is gone afterwards.
func (k *kustomizeFS) buildExclusive(dir string) ([]byte, error) {
	openAPILock.Lock()
	defer openAPILock.Unlock()
	defer openapi.ResetOpenAPI()
	k.exclusive, k.fatalErr, k.kustomizationCount = true, nil, 0
	return k.build(dir)
}

func (k *kustomizeFS) build(dir string) ([]byte, error) {
	// The default options: files of a kustomization lie in or below its
	// folder, no plugins but the built-in ones, no Helm.
	m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(k, path.Join(mountPoint, dir))
	if k.fatalErr != nil {
		return nil, k.fatalErr
	}
	if err != nil {
		return nil, &clippedError{text: "kustomize: " + strings.ReplaceAll(strings.ReplaceAll(err.Error(), mountPoint+"/", ""), mountPoint, "."), err: err}
	}
	out, err := m.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("kustomize: writing the objects: %w", err)
	}
	return out, nil
}
