package verification

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
