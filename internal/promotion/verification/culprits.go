package verification

import "slices"

// Culprits are the resources that make an Application degraded: those that are
// Degraded or Missing, else those that are still Progressing. None: Argo CD
// doesn't say which.
func Culprits(unhealthy []Resource) []Resource {
	var out []Resource
	for _, h := range [][2]string{{degradedHealth, missing}, {progressing, progressing}} {
		for _, r := range unhealthy {
			if r.Health == h[0] || r.Health == h[1] {
				out = append(out, r)
			}
		}
		if out != nil {
			break
		}
	}
	return out
}

// AddCulprits puts before a target's unhealthy resources what its verdict names besides,
// and in the verdict's words.
func AddCulprits(unhealthy, culprits []Resource) []Resource {
	if len(culprits) == 0 {
		return unhealthy
	}
	out := slices.Clone(culprits)
	for _, r := range unhealthy {
		if !slices.ContainsFunc(culprits, r.isSameAs) {
			out = append(out, r)
		}
	}
	return out
}

// isSameAs says that two are about one resource, however it is in each.
func (r Resource) isSameAs(other Resource) bool {
	return r.Group == other.Group && r.Kind == other.Kind && r.Namespace == other.Namespace && r.Name == other.Name
}
