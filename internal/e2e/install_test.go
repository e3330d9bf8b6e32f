//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/liftlock/liftlock/internal/promotion"
)

// The chart is applied to a namespace that takes restricted pods only, and its pod (which the lab
// plays) gets ready. Then the server runs under exactly the account that the chart made. A release
// goes from dev to prod, a broken one is reverted, and the account may do nothing beyond this.
func TestChartsAccountDoesTheJobAndNothingElse(t *testing.T) {
	t.Parallel()
	s := newScenario(t, normalCluster, "install", singleComponent())
	in := s.installChart()
	s.applySets(singleComponent(), nil)
	s.awaitSettled()
	s.server.kubeconfig, s.server.live = in.kubeconfig, true
	s.startServer()

	s.pushRelease("web", "dev", "1.1.0")
	qa := s.awaitMerged("web", "qa", "1.1.0", 0)
	prod := s.awaitOpen("web", "prod", "1.1.0", 0)
	s.approve(ada, prod)
	s.approve(grace, prod)
	s.awaitMerged("web", "prod", "1.1.0", 0)
	s.awaitState("web", "prod", "1.1.0", promotion.Verified)

	s.pushRelease("web", "dev", "1.2.0-broken-in-qa")
	s.awaitMerged("web", "qa", "1.2.0-broken-in-qa", qa.Index)
	s.awaitPull(revertPrefix("web", "qa"), "the revert in qa is merged", 0, isMerged)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)

	eventually(s, "nothing of Argo CD is missing", func() (string, error) {
		ready, err := s.server.getText(s.ctx, "/readyz")
		if err == nil && (!strings.Contains(ready, "argocd lab: ok") || strings.Contains(ready, "argocd lab ")) {
			err = errors.New(ready)
		}
		return ready, err
	})
	in.checkPermissions()
}

// installation is Liftlock in a namespace of the cluster.
type installation struct {
	s          *scenario
	namespace  string
	kubeconfig string // of its ServiceAccount
	client     kubernetes.Interface
}

// installChart installs it as docs/install.md says, with the Argo CD of the server's file.
func (s *scenario) installChart() *installation {
	s.Helper()
	in := &installation{s: s, namespace: s.prefix}
	values := filepath.Join(s.server.dir, "values.yaml")
	s.must(os.WriteFile(values, []byte(fmt.Sprintf(`fullnameOverride: %[1]s
config:
  forges:
    - name: gitea
      type: gitea
      url: %[2]s
      auth: {tokenFile: /etc/liftlock/secrets/forge-token}
      webhookSecretsFile: /etc/liftlock/secrets/webhook-secret
  repositories: [{forge: gitea, name: %[3]s}]
  argocd:
    - name: lab
      kubernetes: {namespaces: [argocd]}
      api: {url: "http://%[4]s", tokenFile: /etc/liftlock/secrets/argocd-token}
      refresh: annotation
      clusters: {live: true}
`, s.prefix, s.cluster.giteaURL, s.server.repo, s.cluster.argocd.server)), 0o600))
	in.run(s.cluster.kubectl, "create", "namespace", in.namespace)
	in.run(s.cluster.kubectl, "label", "namespace", in.namespace, "pod-security.kubernetes.io/enforce=restricted")
	s.Cleanup(func() {
		in.cleanUp(
			[]string{s.cluster.helm, "uninstall", s.prefix, "--namespace", in.namespace},
			[]string{s.cluster.kubectl, "delete", "namespace", in.namespace, "--wait=false"},
			[]string{s.cluster.kubectl, "delete", "persistentvolume", s.prefix, "--wait=false"})
	})
	in.offerVolume(s.prefix)
	in.run(s.cluster.kubectl, "create", "secret", "generic", "liftlock", "--namespace", in.namespace,
		"--from-literal=forge-token=of-no-use", "--from-literal=webhook-secret=of-no-use", "--from-literal=argocd-token=of-no-use", "--from-literal=reader-token=of-no-use-either")
	chart, err := filepath.Abs("../../deploy/chart")
	s.must(err)
	manifests := in.run(s.cluster.helm, "template", s.prefix, chart, "--namespace", in.namespace, "--values", values)
	dry := in.command(s.ctx, s.cluster.kubectl, "apply", "--server-side", "--dry-run=server", "-f", "-")
	dry.Stdin = strings.NewReader(manifests)
	if out, err := dry.CombinedOutput(); err != nil || strings.Contains(string(out), "Warning") {
		s.Fatalf("the API server has something against the chart: %v\n%s", err, out)
	}
	in.run(s.cluster.helm, "install", s.prefix, chart, "--namespace", in.namespace, "--values", values, "--wait", "--timeout", patience.String())
	if out := in.run(s.cluster.kubectl, "get", "deployment", s.prefix, "--namespace", in.namespace, "-o", "jsonpath={.status.readyReplicas}"); out != "1" {
		s.Fatalf("%s replicas are ready", out)
	}
	in.useAccount(s.prefix)
	rest, err := clientcmd.BuildConfigFromFlags("", in.kubeconfig)
	s.must(err)
	rest.QPS, rest.Burst = 200, 400
	in.client, err = kubernetes.NewForConfig(rest)
	s.must(err)
	return in
}

// offerVolume makes the volume for a claim: nothing else makes volumes in the lab.
func (in *installation) offerVolume(claim string) {
	in.s.Helper()
	volume := filepath.Join(in.s.server.dir, "volume.yaml")
	in.s.must(os.WriteFile(volume, []byte(fmt.Sprintf(`apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteOnce]
  claimRef: {namespace: %[2]s, name: %[1]s}
  hostPath: {path: /nowhere}
`, claim, in.namespace)), 0o600))
	in.run(in.s.cluster.kubectl, "apply", "-f", volume)
}

// useAccount makes the kubeconfig of a ServiceAccount: nothing but its token.
func (in *installation) useAccount(name string) {
	in.s.Helper()
	token := in.run(in.s.cluster.kubectl, "create", "token", name, "--namespace", in.namespace, "--duration", "2h")
	access, err := clientcmd.LoadFromFile(in.s.cluster.kubeconfig)
	in.s.must(err)
	for _, user := range access.AuthInfos {
		*user = clientcmdapi.AuthInfo{Token: strings.TrimSpace(token)}
	}
	in.kubeconfig = filepath.Join(in.s.server.dir, "account")
	in.s.must(clientcmd.WriteToFile(*access, in.kubeconfig))
}

// cleanUp runs commands as the cluster's administrator, also after the test's own context ended.
func (in *installation) cleanUp(commands ...[]string) {
	for _, command := range commands {
		ctx, cancel := cleanupContext()
		if out, err := in.command(ctx, command...).CombinedOutput(); err != nil {
			in.s.Logf("%s: %v: %s", command, err, out)
		}
		cancel()
	}
}

func (in *installation) command(ctx context.Context, command ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Env = append(os.Environ(), "KUBECONFIG="+in.s.cluster.kubeconfig)
	return c
}

// run runs a program as the cluster's administrator, and returns its standard output.
func (in *installation) run(command ...string) string {
	in.s.Helper()
	c := in.command(in.s.ctx, command...)
	var errors strings.Builder
	c.Stderr = &errors
	out, err := c.Output()
	if err != nil {
		in.s.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, errors.String())
	}
	return string(out)
}

// checkPermissions asks the API server for everything that the account might do.
func (in *installation) checkPermissions() {
	in.s.Helper()
	allowed := map[string][]string{ // in Argo CD's namespace
		"argoproj.io/applications":    {"get", "list", "watch", "patch"},
		"argoproj.io/applicationsets": {"list", "watch"},
		"argoproj.io/appprojects":     {"list", "watch"},
		"/secrets":                    {"list"},
	}
	resources := []string{
		"argoproj.io/applications", "argoproj.io/applications/status", "argoproj.io/applicationsets", "argoproj.io/appprojects", "/secrets", "/configmaps", "/pods", "/pods/exec", "/pods/log",
		"/serviceaccounts/token", "/namespaces", "/nodes", "/persistentvolumeclaims", "apps/deployments", "batch/jobs",
		"rbac.authorization.k8s.io/roles", "rbac.authorization.k8s.io/rolebindings", "rbac.authorization.k8s.io/clusterrolebindings", "/users", "*/*",
	}
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate", "bind", "escalate", "*"}
	ctx, cancel := context.WithTimeout(in.s.ctx, patience)
	defer cancel()
	for _, namespace := range []string{"argocd", in.namespace, "kube-system", ""} {
		for _, r := range resources {
			group, resource, _ := strings.Cut(r, "/")
			resource, sub, _ := strings.Cut(resource, "/")
			for _, verb := range verbs {
				review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: namespace, Verb: verb, Group: group, Resource: resource, Subresource: sub}}}
				answer, err := in.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
				in.s.must(err)
				if want := namespace == "argocd" && slices.Contains(allowed[r], verb); answer.Status.Allowed != want {
					in.s.Errorf("in namespace %q, %s on %s is allowed: %t; it should be %t", namespace, verb, r, answer.Status.Allowed, want)
				}
			}
		}
	}
}
