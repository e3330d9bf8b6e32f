package render

import (
	"regexp"
	"slices"
)

// Placeholder stands for a secret value within a larger one.
const Placeholder = "(hidden)"

// redactor knows at each place of an object whether its value is a secret. Everything under data,
// stringData and encryptedData is, in Secrets and in the kinds that become Secrets. So are
// environment variables whose names sound secret, and entries of ConfigMaps under such names.
type redactor struct {
	kind         string
	hidden       bool
	depth        int
	inConfigData bool // within a ConfigMap's data
	// namesOnly says that every value may be a secret but the harmless ones.
	namesOnly bool
	harmless  bool // with namesOnly: here is one of those
	free      bool // with namesOnly: within a mapping whose keys are anybody's
}

// These are shown where any value may be a secret: the kinds are known to have nothing else under
// these names.
var (
	harmlessKeys   = []string{"image", "replicas", "minReplicas", "maxReplicas", "name", "namespace", "kind", "apiVersion"}
	harmlessGroups = []string{"", "apps", "batch", "autoscaling", "networking.k8s.io", "policy", "rbac.authorization.k8s.io"}
	freeKeys       = []string{"annotations", "labels", "matchLabels", "selector", "nodeSelector", "data", "binaryData", "stringData",
		"volumeAttributes", "options"}
)

// isKnown says that an object's kind is Kubernetes' own, or Argo's Rollout, which is like them.
func (id identity) isKnown() bool {
	return slices.Contains(harmlessGroups, id.group) || id.group == "argoproj.io" && id.kind == "Rollout"
}

// hides says that a value is not shown. The entries of a mapping or list are judged one by one.
func (r redactor) hides(value any) bool {
	if r.hidden || !r.namesOnly || r.harmless {
		return r.hidden
	}
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// itemKey is the field that tells lists' items apart, whose values become part of paths.
func (r redactor) itemKey(lists ...[]any) string {
	key := itemKey(lists...)
	if r.namesOnly && (key != "name" || r.free) {
		return ""
	}
	return key
}

// secretKinds hold what only few may read, as it is or encrypted.
var secretKinds = []string{"Secret", "SealedSecret", "SopsSecret"}

// secretNamePattern matches names whose values had better not be shown.
var secretNamePattern = regexp.MustCompile(
	`(?i)passw(or)?d|passphrase|secret|token|credential|api[-_.]?key|private[-_.]?key|access[-_.]?key`)

func newRedactor(o *Object, namesOnly bool) redactor {
	return redactor{kind: o.Kind, namesOnly: namesOnly, free: namesOnly && !o.toIdentity().isKnown()}
}

// enterKey goes into one field of a mapping.
func (r redactor) enterKey(parent map[string]any, key string) redactor {
	out := r
	out.depth++
	out.free = r.free || r.namesOnly && slices.Contains(freeKeys, key)
	isType := r.depth == 0 && (key == "apiVersion" || key == "kind")
	out.harmless = r.namesOnly && (isType || !r.free && slices.Contains(harmlessKeys, key))
	out.inConfigData = r.depth == 0 && r.kind == "ConfigMap" && (key == "data" || key == "binaryData")
	switch {
	case r.hidden:
	case slices.Contains(secretKinds, r.kind):
		out.hidden = key == "data" || key == "stringData" || key == "encryptedData" ||
			key == "kubectl.kubernetes.io/last-applied-configuration"
	case r.inConfigData:
		out.hidden = secretNamePattern.MatchString(key)
	case key == "value":
		name, _ := parent["name"].(string)
		out.hidden = secretNamePattern.MatchString(name)
	}
	return out
}

// enterEither goes into a field that both sides have: it is hidden when either
// side's is.
func (r redactor) enterEither(a, b map[string]any, key string) redactor {
	out := r.enterKey(a, key)
	out.hidden = out.hidden || r.enterKey(b, key).hidden
	return out
}

// maskSecrets is a value with what is secret in it replaced; keys stay.
func (r redactor) maskSecrets(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, item := range value {
			out[key] = r.enterKey(value, key).maskSecrets(item)
		}
		return out
	case []any:
		if r.hidden {
			break
		}
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = r.maskSecrets(item)
		}
		return out
	}
	if r.hides(value) {
		return Placeholder
	}
	return value
}
