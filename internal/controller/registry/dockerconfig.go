package registry

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// MaxDockerConfig bounds a file of credentials.
const MaxDockerConfig = 1 << 20

// Credentials are a registry's in a file as docker login writes it.
type Credentials struct{ Username, Password, IdentityToken string }

// ParseDockerConfig reads a file as docker login writes it, which is also what a Kubernetes pull secret has
// (kubernetes.io/dockerconfigjson), and gives the credentials by registry, as image names have it. Programs that keep
// credentials (credsStore, credHelpers) are not started: what they have isn't known. No error names a credential.
func ParseDockerConfig(data []byte) (map[string]Credentials, error) {
	var file struct {
		Auths map[string]struct {
			Auth          string `json:"auth"`
			Username      string `json:"username"`
			Password      string `json:"password"`
			IdentityToken string `json:"identitytoken"`
		} `json:"auths"`
	}
	if len(data) > MaxDockerConfig {
		return nil, fmt.Errorf("it has more than %d bytes", MaxDockerConfig)
	}
	if json.Unmarshal(data, &file) != nil {
		return nil, errors.New("it is no JSON as docker login writes it")
	}
	out := map[string]Credentials{}
	for address, a := range file.Auths {
		c := Credentials{Username: a.Username, Password: a.Password, IdentityToken: a.IdentityToken}
		if a.Auth != "" {
			plain, err := base64.StdEncoding.DecodeString(a.Auth)
			user, password, ok := strings.Cut(strings.TrimRight(string(plain), "\x00"), ":")
			if err != nil || !ok {
				return nil, fmt.Errorf("the auth of %s can't be read", configHost(address))
			}
			c.Username, c.Password = user, password
		}
		if c != (Credentials{}) {
			out[configHost(address)] = c
		}
	}
	return out, nil
}

// configHost is the registry of an address in such a file: https://index.docker.io/v1/ is Docker Hub.
func configHost(address string) string {
	address = strings.TrimPrefix(strings.TrimPrefix(address, "https://"), "http://")
	address, _, _ = strings.Cut(address, "/")
	return hostOf(address)
}

// CredentialsOf are those of a registry, as image names have it; false: there are none.
func CredentialsOf(all map[string]Credentials, host string) (Credentials, bool) {
	c, ok := all[hostOf(host)]
	return c, ok
}
