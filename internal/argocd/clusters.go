package argocd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/liftlock/liftlock/internal/cache/lock"
)

const (
	// clusterLabel, with this value, is how Argo CD marks its cluster Secrets.
	clusterLabel      = "argocd.argoproj.io/secret-type"
	clusterLabelValue = "cluster"
	clusterSelector   = clusterLabel + "=" + clusterLabelValue
	// clusterInterval is how often the cluster Secrets are listed while somebody
	// asks for them. They are listed and not watched: a watch would need another
	// permission, and would keep a buffer with credentials for as long as it lasts.
	clusterInterval = time.Minute
	// clusterIdle is after how long without a question the listing stops.
	clusterIdle = time.Hour
)

// Cluster is a cluster as its Secret describes it, without the credentials.
type Cluster struct {
	Secret, Namespace     string // the Secret's
	Name, Server, Project string
	Labels, Annotations   map[string]string
}

// clusterCache knows the cluster Secrets of one Argo CD, from when it is first asked.
type clusterCache struct {
	client    rest.Interface // of the core API; nil: byAPI is asked
	byAPI     func(ctx context.Context) ([]Cluster, error)
	namespace string
	log       *zap.Logger
	now       func() time.Time
	versions  *versionCounter
	requested chan struct{} // closed at the first question
	once      sync.Once

	listing     lock.Keyed[string] // one list at a time
	mu          sync.Mutex
	clusters    []Cluster // nil: never listed
	err         error     // why the last list failed
	listedAt    time.Time // of the last list, successful or not
	lastRequest time.Time // of the last question
}

// getClusters answers from memory or, the first time and after an idle hour, from a list.
func (c *clusterCache) getClusters(ctx context.Context) ([]Cluster, error) {
	c.once.Do(func() { close(c.requested) })
	unlock, err := c.listing.Lock(ctx, c.namespace)
	if err != nil {
		return nil, err
	}
	defer unlock()
	c.mu.Lock()
	c.lastRequest = c.now()
	old := c.listedAt.IsZero() || c.now().Sub(c.listedAt) > 2*clusterInterval
	c.mu.Unlock()
	if old {
		c.refreshClusters(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clusters == nil && c.err == nil {
		return nil, ctx.Err() // the caller left before there was an answer
	}
	return c.clusters, c.err
}

func (c *clusterCache) lastError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// run lists again and again from the first question on, until ctx ends.
func (c *clusterCache) run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-c.requested:
	}
	tick := time.NewTicker(clusterInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.mu.Lock()
			idle := c.now().Sub(c.lastRequest) > clusterIdle
			c.mu.Unlock()
			if idle {
				continue
			}
			unlock, err := c.listing.Lock(ctx, c.namespace)
			if err != nil {
				return
			}
			c.refreshClusters(ctx)
			unlock()
		}
	}
}

// refreshClusters lists once and tells if the answer is another one. The caller holds listing.
func (c *clusterCache) refreshClusters(ctx context.Context) {
	list := c.byAPI
	if c.client != nil {
		list = c.listClusters
	}
	clusters, err := list(ctx)
	if err != nil && ctx.Err() != nil {
		return // the caller is gone: that says nothing about the clusters
	}
	c.mu.Lock()
	turned := (err == nil) != (c.err == nil) && !c.listedAt.IsZero()
	changed := turned || err == nil && c.clusters != nil && !reflect.DeepEqual(c.clusters, clusters)
	failed := err != nil && c.err == nil
	c.listedAt, c.err = c.now(), err
	if err == nil {
		c.clusters = clusters
	}
	c.mu.Unlock()
	if failed {
		c.log.Warn("the clusters can't be read", zap.Error(err))
	}
	if changed {
		c.versions.countChange(ofClusters)
	}
}

func (c *clusterCache) listClusters(ctx context.Context) ([]Cluster, error) {
	out := []Cluster{}
	var broken error
	err := visitPages(func(o metav1.ListOptions, item func([]byte)) (listMeta, error) {
		return readListPage(ctx, c.client.Get().Namespace(c.namespace).Resource("secrets"), o, callTimeout, item)
	}, clusterSelector, func(raw json.RawMessage) error {
		cluster, err := decodeCluster(raw)
		clear(raw) // the credentials are in it; so are those of the next ones, whatever this one's error is
		broken = cmp.Or(broken, err)
		out = append(out, cluster)
		return nil
	})
	if err = cmp.Or(err, broken); err != nil {
		return nil, fmt.Errorf("list cluster Secrets in namespace %s: %w", c.namespace, explainError(err, "list", "", "secrets"))
	}
	slices.SortFunc(out, func(a, b Cluster) int { return strings.Compare(a.Secret, b.Secret) })
	return out, nil
}

// decodeCluster reads a cluster Secret but for its data.config, which holds the
// credentials, and for kubectl's copy of the whole. Its errors quote nothing.
func decodeCluster(raw []byte) (Cluster, error) {
	var s struct {
		Metadata struct {
			Name        string                     `json:"name"`
			Namespace   string                     `json:"namespace"`
			Labels      map[string]string          `json:"labels"`
			Annotations map[string]json.RawMessage `json:"annotations"`
		} `json:"metadata"`
		Data struct {
			Name    string `json:"name"`
			Server  string `json:"server"`
			Project string `json:"project"`
		} `json:"data"`
	}
	if json.Unmarshal(raw, &s) != nil || s.Metadata.Name == "" {
		return Cluster{}, fmt.Errorf("a cluster Secret can't be read")
	}
	c := Cluster{Secret: s.Metadata.Name, Namespace: s.Metadata.Namespace, Labels: s.Metadata.Labels}
	for k, v := range s.Metadata.Annotations {
		if k == lastApplied {
			clear(v)
			continue
		}
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		var text string
		if json.NewDecoder(bytes.NewReader(v)).Decode(&text) != nil {
			return Cluster{}, fmt.Errorf("cluster Secret %q: its annotations can't be read", c.Secret)
		}
		c.Annotations[k] = text
	}
	for _, f := range []struct {
		key, encoded string
		to           *string
	}{{"name", s.Data.Name, &c.Name}, {"server", s.Data.Server, &c.Server}, {"project", s.Data.Project, &c.Project}} {
		plain, err := base64.StdEncoding.DecodeString(f.encoded)
		if err != nil {
			return Cluster{}, fmt.Errorf("cluster Secret %q: data.%s is not base64", c.Secret, f.key)
		}
		*f.to = string(plain)
	}
	if c.Server == "" {
		return Cluster{}, fmt.Errorf("cluster Secret %q: data.server is missing", c.Secret)
	}
	return c, nil
}
