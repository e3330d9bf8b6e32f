package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Input is what one target asks for. It marshals to JSON and back.
type Input struct {
	Application string `json:"application"`         // the Application's name: Helm's release name unless a source says otherwise
	Namespace   string `json:"namespace,omitempty"` // the destination's namespace
	// the commit, for $ARGOCD_APP_REVISION; a rendering that uses it changes with every commit
	Revision string `json:"revision,omitempty"`
	// the cluster's, e.g. 1.31.2; empty: DefaultKubeVersion, and a note where it matters
	KubeVersion string   `json:"kubeVersion,omitempty"`
	APIVersions []string `json:"apiVersions,omitempty"` // the cluster's, as group/version or group/version/Kind, besides Kubernetes' own
	Sources     []Source `json:"sources"`
	// ValueFilesAs says what an entry of helm.valueFiles is: "names" of files, "globs" (and each
	// file counts once), or empty, where it isn't known.
	ValueFilesAs string `json:"valueFilesAs,omitempty"`
	// Branches are the trees of the branches that sources name, and of externals.
	Branches map[string]Tree `json:"-"`
}

// Tree is the files of a commit, with what identifies them.
type Tree struct {
	FS fs.FS
	ID ContentID // only a [Memo] asks for it
	// Revision is an external's commit, or a chart's version; empty: what was asked for.
	Revision string
}

// Source is one source of an Application.
type Source struct {
	RepoURL        string `json:"repoURL,omitempty"`
	Path           string `json:"path,omitempty"`
	Chart          string `json:"chart,omitempty"`
	TargetRevision string `json:"targetRevision,omitempty"`
	Ref            string `json:"ref,omitempty"`
	// InTree says that the source's repository and revision are the tree that is rendered; else it is an [External].
	InTree bool `json:"here"`
	// Branch, with Here, is the one of Input.Branches that the source is read at
	// instead of the tree that is rendered.
	Branch string `json:"branch,omitempty"`
	// Options are the source's kustomize, helm, directory and plugin blocks,
	// as a JSON object with these keys, as the Application has them. Other
	// keys are ignored.
	Options json.RawMessage `json:"options,omitempty"`
}

// sourceOptions are a source's blocks; a pointer is nil where the Application has none.
type sourceOptions struct {
	Kustomize *kustomizeOptions `json:"kustomize"`
	Helm      *helmOptions      `json:"helm"`
	Directory *directoryOptions `json:"directory"`
	Plugin    *pluginOptions    `json:"plugin"`
}

// pluginOptions name the plugin; without a name one of Argo CD's takes the source by itself.
type pluginOptions struct {
	Name string `json:"name"`
}

type kustomizeOptions struct {
	NamePrefix                string            `json:"namePrefix"`
	NameSuffix                string            `json:"nameSuffix"`
	Images                    []string          `json:"images"`
	CommonLabels              map[string]string `json:"commonLabels"`
	CommonAnnotations         map[string]string `json:"commonAnnotations"`
	ForceCommonLabels         bool              `json:"forceCommonLabels"`
	ForceCommonAnnotations    bool              `json:"forceCommonAnnotations"`
	Namespace                 string            `json:"namespace"`
	CommonAnnotationsEnvsubst bool              `json:"commonAnnotationsEnvsubst"`
	Replicas                  []struct {
		Name  string      `json:"name"`
		Count json.Number `json:"count"` // a number, or a string of one
	} `json:"replicas"`
	Patches              []json.RawMessage `json:"patches"`
	Components           []string          `json:"components"`
	LabelWithoutSelector bool              `json:"labelWithoutSelector"`
}

type helmOptions struct {
	ValueFiles []string `json:"valueFiles"`
	Parameters []struct {
		Name        string `json:"name"`
		Value       string `json:"value"`
		ForceString bool   `json:"forceString"`
	} `json:"parameters"`
	FileParameters []struct {
		Name string `json:"name"`
		Path string `json:"path"`
	} `json:"fileParameters"`
	ReleaseName             string          `json:"releaseName"`
	Values                  string          `json:"values"`
	ValuesObject            json.RawMessage `json:"valuesObject"`
	Version                 string          `json:"version"`
	IgnoreMissingValueFiles bool            `json:"ignoreMissingValueFiles"`
	SkipCrds                bool            `json:"skipCrds"`
	SkipTests               bool            `json:"skipTests"`
	SkipSchemaValidation    bool            `json:"skipSchemaValidation"`
	Namespace               string          `json:"namespace"`
	KubeVersion             string          `json:"kubeVersion"`
	APIVersions             []string        `json:"apiVersions"`
}

type directoryOptions struct {
	Recurse bool   `json:"recurse"`
	Include string `json:"include"`
	Exclude string `json:"exclude"`
}

// parseOptions decodes a source's blocks.
func parseOptions(raw json.RawMessage) (sourceOptions, error) {
	var o sourceOptions
	if len(bytes.TrimSpace(raw)) == 0 {
		return o, nil
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return sourceOptions{}, fmt.Errorf("the source's options: %w", err)
	}
	return o, nil
}

// cleanTreePath cleans a path that people wrote, relative to the tree's root, and
// says whether it stays below it.
func cleanTreePath(p string) (string, bool) {
	clean := path.Clean(p)
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
		return "", false
	}
	return clean, true
}
