//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// pod is what an installation's Deployment says, run beside the cluster: the lab's pods have no
// containers. Its files are below a folder, its ports are free ones, and of the cluster it has
// its ServiceAccount's token alone.
type pod struct {
	*installation
	root  string // of its files
	args  []string
	paths *strings.Replacer // the container's paths, as they are here
}

// runPod waits until the lab's pod is ready, and runs the container's command as the story's server.
func (in *installation) runPod(deployment string) *pod {
	s := in.s
	s.Helper()
	in.run(s.cluster.kubectl, "rollout", "status", "deployment", deployment, "--namespace", in.namespace, "--timeout", patience.String())
	var d appsv1.Deployment
	in.readObject(&d, "deployment", deployment)
	in.useAccount(d.Spec.Template.Spec.ServiceAccountName)

	p := &pod{installation: in, root: filepath.Join(s.server.dir, "pod")}
	container := &d.Spec.Template.Spec.Containers[0]
	var mounts, addresses []string
	for _, m := range container.VolumeMounts {
		if m.MountPath != os.TempDir() { // that one is the machine's
			mounts = append(mounts, m.MountPath, filepath.Join(p.root, m.MountPath))
		}
	}
	p.paths = strings.NewReplacer(mounts...)
	for _, port := range container.Ports {
		address := s.server.address
		if port.Name != "console" {
			other, err := newServer(s.cluster, s.server.dir, s.server.repo) // for its address
			s.must(err)
			address = other.address
		}
		addresses = append(addresses, "0.0.0.0:"+strconv.Itoa(int(port.ContainerPort)), address)
	}
	inPod := strings.NewReplacer(append(mounts, addresses...)...)
	for _, m := range container.VolumeMounts {
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.Name == m.Name {
				p.mount(filepath.Join(p.root, m.MountPath), &v, inPod)
			}
		}
	}
	for _, arg := range container.Args {
		p.args = append(p.args, p.paths.Replace(arg))
	}
	s.must(s.server.run(s.ctx, p.args, "KUBECONFIG="+in.kubeconfig))
	return p
}

// mount makes the files of a volume, with what the replacer makes of the paths in them.
func (p *pod) mount(folder string, v *corev1.Volume, inPod *strings.Replacer) {
	s := p.s
	s.Helper()
	s.must(os.MkdirAll(folder, 0o700))
	files := map[string]string{}
	switch {
	case v.ConfigMap != nil:
		var c corev1.ConfigMap
		p.readObject(&c, "configmap", v.ConfigMap.Name)
		for name, text := range c.Data {
			files[name] = inPod.Replace(text)
		}
	case v.Secret != nil:
		var secret corev1.Secret
		p.readObject(&secret, "secret", v.Secret.SecretName)
		for name, text := range secret.Data {
			files[name] = string(text)
		}
	}
	for name, text := range files {
		s.must(os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
}

// readObject reads an object of the installation's namespace.
func (in *installation) readObject(into any, kind, name string) {
	in.s.Helper()
	in.s.must(json.Unmarshal([]byte(in.run(in.s.cluster.kubectl, "get", kind, name, "--namespace", in.namespace, "-o", "json")), into))
}

// kubectlScript is a kubectl that runs in the pod what exec names, and leaves all else to the
// real one.
func (p *pod) kubectlScript() string {
	return fmt.Sprintf(`#!/bin/bash
if [[ " $* " != *" exec "* ]]; then exec %[1]q "$@"; fi
while [[ $1 != -- ]]; do shift; done
shift
args=("${@//\/etc\/liftlock/%[2]s}")
KUBECONFIG=%[3]q LIFTLOCK_SERVER=http://%[4]s exec "${args[@]}"
`, p.s.cluster.kubectl, strings.ReplaceAll(filepath.Join(p.root, "/etc/liftlock"), "/", `\/`), p.kubeconfig, p.s.server.address)
}
