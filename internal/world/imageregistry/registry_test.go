package imageregistry

import (
	"net/http"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestPush pushes two tags, reads one back, and holds that nothing answers once it is closed.
func TestPush(t *testing.T) {
	r, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"1.0.0", "1.1.0"} {
		if err := r.Push(t.Context(), "web", tag, Source{"https://git.example/acme/web", "c0ffee" + tag[:1]}); err != nil {
			t.Fatal(err)
		}
	}
	repository, err := name.NewRepository(r.Host+"/web", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	tags, err := remote.List(repository)
	if err != nil || len(tags) != 2 {
		t.Errorf("%q, %v", tags, err)
	}
	image, err := remote.Image(repository.Tag("1.1.0"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil || config.Config.Labels["org.opencontainers.image.source"] != "https://git.example/acme/web" || config.Config.Labels["org.opencontainers.image.revision"] != "c0ffee1" {
		t.Errorf("%+v, %v", config, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if res, err := http.Get("http://" + r.Host + "/v2/"); err == nil {
		res.Body.Close()
		t.Errorf("it answers %s", res.Status)
	}
}
