package cli

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	memory "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// startRegistry starts a registry with some images and charts, and the index of a Helm repository beside it, and gives its
// address. Images below private/ need a login.
func startRegistry(t *testing.T) string {
	t.Helper()
	var isFilled atomic.Bool
	images := memory.New(memory.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case r.URL.Path == "/stable/index.yaml":
			fmt.Fprint(w, "entries:\n  redis: [{version: 19.6.4, urls: [a]}, {version: 19.7.0, urls: [b]}, {version: 20.0.0, urls: [c]}]\n")
		case strings.HasPrefix(r.URL.Path, "/v2/private/") && (user != "ada" || password != "hunter2") && isFilled.Load():
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/v2/" && user == "":
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			images.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	for repository, tags := range map[string]string{
		"acme/web": "1.4.1 1.4.2 1.5.0 1.6.0-rc.1 2.0.0 1.5.1-debug latest", "acme/api": "main-9 main-10 dev-11", "private/job": "1.4.2 1.5.0",
		"charts/cart": "3.1.0 3.2.0_build.1 4.0.0", "acme/signed": "1.4.1 1.5.0 1.6.0",
	} {
		for tag := range strings.FieldsSeq(tags) {
			ref, err := name.NewTag(host+"/"+repository+":"+tag, name.Insecure)
			if err != nil {
				t.Fatal(err)
			}
			config, err := empty.Image.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			config = config.DeepCopy()
			config.OS, config.Architecture, config.Config.Labels = "linux", "amd64", map[string]string{"version": tag}
			var image v1.Image
			if image, err = mutate.ConfigFile(empty.Image, config); err == nil {
				err = remote.Write(ref, image)
			}
			if err == nil && repository == "acme/signed" && tag == "1.5.0" {
				err = signImage(ref.Context(), image)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	isFilled.Store(true)
	return host
}

// signImage puts a signature beside an image as cosign does, by a key that everybody knows.
func signImage(repository name.Repository, image v1.Image) error {
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	signed := fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"}}`,
		repository.Name(), digest)
	signature := ed25519.Sign(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), signed)
	signatures, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{
		Layer:       static.NewLayer(signed, "application/vnd.dev.cosign.simplesigning.v1+json"),
		Annotations: map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature)}})
	if err != nil {
		return err
	}
	return remote.Write(repository.Tag("sha256-"+digest.Hex+".sig"), signatures)
}
