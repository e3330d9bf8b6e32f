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

// schemas guards the OpenAPI schema that kustomize keeps in one variable for
// the whole process, and leaves there: builds that bring a schema run alone.
var schemas sync.RWMutex //nolint:gochecknoglobals // what it guards is one

// errSchema stops a build that turns out to bring an OpenAPI schema.
var errSchema = errors.New("the kustomization brings an OpenAPI schema")

// kustomize renders a kustomization with the Application's options.
func (r *rendering) kustomize(dir string, o *kustomizeOptions, env environment) error {
	k := &kustomizeFS{files: r.files, edited: map[string][]byte{}}
	if err := k.edit(dir, o, env); err != nil {
		return err
	}
	out, err := k.shared(dir)
	if errors.Is(err, errSchema) {
		out, err = k.alone(dir)
	}
	if err != nil {
		return err
	}
	return r.out.yaml(out)
}

// shared builds beside other builds, unless a schema comes along.
func (k *kustomizeFS) shared(dir string) ([]byte, error) {
	schemas.RLock()
	defer schemas.RUnlock()
	k.lone = false
	return k.build(dir)
}

// alone builds with a schema of its own, which is gone afterwards.
func (k *kustomizeFS) alone(dir string) ([]byte, error) {
	schemas.Lock()
	defer schemas.Unlock()
	defer openapi.ResetOpenAPI()
	k.lone, k.refused, k.kustomizations = true, nil, 0
	return k.build(dir)
}

func (k *kustomizeFS) build(dir string) ([]byte, error) {
	// The default options: files of a kustomization lie in or below its
	// folder, no plugins but the built-in ones, no Helm.
	m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(k, path.Join(mount, dir))
	if k.refused != nil {
		return nil, k.refused
	}
	if err != nil {
		return nil, &clipped{text: "kustomize: " + strings.ReplaceAll(strings.ReplaceAll(err.Error(), mount+"/", ""), mount, "."), err: err}
	}
	out, err := m.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("kustomize: writing the objects: %w", err)
	}
	return out, nil
}
