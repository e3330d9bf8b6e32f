package argocd

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// RESTConfig says how to reach a Kubernetes API. With a kubeconfig file's path
// it is read from there, with the given context or, when that is empty, the
// file's current one. Without either, the configuration that a pod gets is
// used, and outside of a pod the usual lookup (KUBECONFIG, then
// ~/.kube/config). The file is read at once; nothing is dialled.
func RESTConfig(kubeconfig, kubeContext string) (*rest.Config, error) {
	silenceClientGo()
	if kubeconfig == "" && kubeContext == "" {
		config, err := rest.InClusterConfig()
		if err == nil {
			return config, nil
		}
		if !errors.Is(err, rest.ErrNotInCluster) {
			return nil, fmt.Errorf("read the pod's own Kubernetes access: %w", err)
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	from := "the usual places (KUBECONFIG, then ~/.kube/config)"
	if kubeconfig != "" {
		rules.ExplicitPath, from = kubeconfig, kubeconfig
	}
	if kubeContext != "" {
		from += ", context " + kubeContext
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: kubeContext}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, &KubeconfigError{From: from, Err: err}
	}
	return config, nil
}

// KubeconfigError is that how to reach a Kubernetes API can't be read. The caller says what to set
// instead, as it knows where it was set.
type KubeconfigError struct {
	From string // where it was looked for
	Err  error
}

func (k *KubeconfigError) Error() string {
	return fmt.Sprintf("read the kubeconfig from %s: %v", k.From, k.Err)
}

func (k *KubeconfigError) Unwrap() error { return k.Err }

// Bursts of refreshes (a wide environment's targets all at once) must not queue
// behind client-go's default of 5 requests a second; the API server has its own
// fairness.
const (
	requestsPerSecond = 50
	requestBurst      = 100
)

// silenceClientGo keeps what client-go writes to standard error on its own account,
// once for the whole process, out of a structured log: feeds report the same errors.
// It comes before every use of client-go, which reads its logger without a lock.
var silenceClientGo = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

// newClient makes a client for one version of an API group, whose addresses begin
// with path. Its scheme knows no types but Status, which the server's errors are.
func newClient(config *rest.Config, path string, group schema.GroupVersion) (rest.Interface, error) {
	silenceClientGo()
	scheme := runtime.NewScheme()
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"}, &metav1.Status{})
	c := rest.CopyConfig(config)
	c.Timeout = 0 // it would also end watches; every call has its own deadline
	c.APIPath = path
	c.GroupVersion = &group
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	c.UserAgent = "liftlock"
	if c.QPS == 0 {
		c.QPS, c.Burst = requestsPerSecond, requestBurst
	}
	c.WarningHandler = rest.NoWarnings{}
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return errorBodyLimiter{next} })
	return rest.RESTClientFor(c)
}

// maxErrorBody bounds what is read of an answer that is not a success.
const maxErrorBody = 64 << 10

// errorBodyLimiter cuts the bodies of errors, which client-go reads to their end.
type errorBodyLimiter struct{ next http.RoundTripper }

func (e errorBodyLimiter) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := e.next.RoundTrip(r)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		body := resp.Body
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(body, maxErrorBody), body}
	}
	return resp, err
}
