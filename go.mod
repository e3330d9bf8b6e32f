module github.com/liftlock/liftlock

go 1.26.0

toolchain go1.26.11

require (
	code.gitea.io/sdk/gitea v0.22.1 // Gitea's API
	github.com/BurntSushi/toml v1.6.0 // the functions fromToml and toToml of charts' templates
	github.com/CycloneDX/cyclonedx-go v0.12.0 // a release's bill of materials
	github.com/Masterminds/semver/v3 v3.4.0 // versions as Helm and Argo CD compare them, so no newer than theirs
	github.com/Masterminds/sprig/v3 v3.3.0 // the functions of ApplicationSets' templates, as Argo CD has them
	github.com/argoproj/argo-cd/v2 v2.14.21 // the ApplicationSets' own types and generators; the last 2 there is
	github.com/argoproj/gitops-engine v0.7.1-0.20250521000818-c08b0a72c1f1 // what that takes
	github.com/bmatcuk/doublestar/v4 v4.7.1 // globs of Git generators, at Argo CD's own version
	github.com/cenkalti/backoff/v4 v4.3.0 // retries; 5 has no timer that a test could move
	github.com/chromedp/cdproto v0.0.0-20230802225258-3cf4e6d46a89 // what chromedp speaks
	github.com/chromedp/chromedp v0.9.2 // tests of the console in a browser
	github.com/coreos/go-oidc/v3 v3.21.0 // logins at an identity provider
	github.com/evanphx/json-patch v5.9.11+incompatible // merge patches of sources, as Argo CD applies them
	github.com/go-git/go-git/v5 v5.19.3 // the packets of Git's smart HTTP protocol
	github.com/go-jose/go-jose/v4 v4.1.4 // the identity provider of tests signs with it
	github.com/go-logr/logr v1.4.3 // client-go's log, led into ours
	github.com/gobwas/glob v0.2.3 // globs as Argo CD matches them, at its own version
	github.com/gofrs/flock v0.13.2 // one process a database file, on every system
	github.com/golang-jwt/jwt/v4 v4.5.2 // tokens of GitHub Apps and of Argo CD, at the version that both have
	github.com/google/cel-go v0.30.0 // expressions of gates
	github.com/google/go-cmp v0.7.0 // differences in tests
	github.com/google/go-containerregistry v0.20.7 // images' names, and what registries say of them
	github.com/google/go-github/v60 v60.0.0 // GitHub's API, at the version that the product set
	github.com/google/licenseclassifier/v2 v2.0.0 // licences in a release's bill of materials
	github.com/hashicorp/golang-lru/v2 v2.0.7 // what the caches keep
	github.com/hmarr/codeowners v1.2.1 // CODEOWNERS
	github.com/imdario/mergo v0.3.16 // merged generators, as Argo CD merges them, at its own version
	github.com/invopop/jsonschema v0.14.0 // the schemas of our files
	github.com/jackc/pgx/v5 v5.9.2 // PostgreSQL
	github.com/klauspost/compress v1.20.2 // the console's answers, compressed
	github.com/microcosm-cc/bluemonday v1.0.27 // what the emulated forges keep of HTML
	github.com/pressly/goose/v3 v3.24.3 // the database's migrations
	github.com/prometheus/client_golang v1.23.2 // metrics
	github.com/robfig/cron/v3 v3.0.1 // windows and freezes, as the product set
	github.com/rogpeppe/go-internal v1.14.1 // scripts that test the commands
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.2 // tests hold files and answers against their schemas
	github.com/secure-systems-lab/go-securesystemslib v0.9.1 // what the signatures of envelopes are over
	github.com/sigstore/protobuf-specs v0.5.0 // sigstore's bundles
	github.com/sigstore/sigstore v1.10.4 // signatures of images; sigstore-go, which verifies without keys too, needs newer libraries than Argo CD's code takes
	github.com/sirupsen/logrus v1.9.3 // what Argo CD's code logs with, which is turned off
	github.com/spf13/cobra v1.10.2 // the commands
	github.com/spf13/pflag v1.0.10 // their flags
	github.com/standard-webhooks/standard-webhooks/libraries v0.0.1 // signatures of outgoing webhooks
	github.com/valyala/fasttemplate v1.2.2 // ApplicationSets' old templates, as Argo CD has them
	github.com/vektah/gqlparser/v2 v2.5.63 // the emulated GitHub checks queries against its schema
	github.com/xanzy/go-gitlab v0.115.0 // GitLab's API, as the product set
	github.com/xeipuuv/gojsonreference v0.0.0-20180127040603-bd5ef7bd5415 // references in the schemas of charts' values
	github.com/yuin/goldmark v1.7.17 // Markdown as forges render it
	go.uber.org/zap v1.27.0 // logs, as the product set
	golang.org/x/crypto v0.59.0 // SSH signatures of commits
	golang.org/x/mod v0.42.0 // modules' versions in a release's bill of materials
	golang.org/x/net v0.62.0 // tests read the HTML that forges make of our texts
	golang.org/x/oauth2 v0.36.0 // logins at an identity provider
	golang.org/x/sync v0.25.0 // groups of goroutines
	golang.org/x/sys v0.50.0 // memory and limits of child processes
	golang.org/x/term v0.48.0 // tokens typed in a terminal
	golang.org/x/text v0.44.0 // manifests in UTF-16, which Windows' editors write
	golang.org/x/time v0.12.0 // limits of rates
	golang.org/x/tools v0.52.0 // the tests of the rules read the code
	google.golang.org/protobuf v1.36.11 // sigstore's bundles as JSON
	gopkg.in/yaml.v3 v3.0.1 // YAML with places
	helm.sh/helm/v3 v3.20.2 // charts, as Argo CD renders them
	k8s.io/api v0.35.1 // Kubernetes' types, at Argo CD 2.14's version like all of k8s.io
	k8s.io/apiextensions-apiserver v0.35.1 // what the API server drops of an ApplicationSet, by its schema
	k8s.io/apimachinery v0.35.1 // Kubernetes' objects
	k8s.io/client-go v0.35.1 // watches of Applications and ApplicationSets
	k8s.io/klog/v2 v2.130.1 // what client-go logs with
	k8s.io/utils v0.0.0-20251002143259-bc988d571ff4 // the clock that tests move
	modernc.org/sqlite v1.60.1 // SQLite without C
	pgregory.net/rapid v1.3.0 // tests of properties
	sigs.k8s.io/controller-runtime v0.19.3 // the client that Argo CD's generators take
	sigs.k8s.io/json v0.0.0-20250730193827-2d320260d730 // JSON as the API server reads it
	sigs.k8s.io/kustomize/api v0.20.1 // kustomizations
	sigs.k8s.io/kustomize/kyaml v0.20.1 // their files
	sigs.k8s.io/yaml v1.6.0 // YAML as Kubernetes reads it
)

require (
	cel.dev/expr v0.25.2 // indirect
	cloud.google.com/go/compute/metadata v0.9.0 // indirect
	dario.cat/mergo v1.0.1 // indirect
	github.com/42wim/httpsig v1.2.3 // indirect
	github.com/Azure/go-ansiterm v0.0.0-20250102033503-faa5f7b0171c // indirect
	github.com/MakeNowJust/heredoc v1.0.0 // indirect
	github.com/Masterminds/goutils v1.1.1 // indirect
	github.com/Microsoft/go-winio v0.6.2 // indirect
	github.com/ProtonMail/go-crypto v1.1.6 // indirect
	github.com/agnivade/levenshtein v1.2.1 // indirect
	github.com/antlr4-go/antlr/v4 v4.13.1 // indirect
	github.com/argoproj/pkg v0.13.7-0.20230626144333-d56162821bd1 // indirect
	github.com/aws/aws-sdk-go v1.55.5 // indirect
	github.com/aymerick/douceur v0.2.0 // indirect
	github.com/bahlo/generic-list-go v0.2.0 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/blang/semver/v4 v4.0.0 // indirect
	github.com/bombsimon/logrusr/v2 v2.0.1 // indirect
	github.com/bradleyfalzon/ghinstallation/v2 v2.12.0 // indirect
	github.com/buger/jsonparser v1.1.2 // indirect
	github.com/casbin/casbin/v2 v2.102.0 // indirect
	github.com/casbin/govaluate v1.2.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/chai2010/gettext-go v1.0.2 // indirect
	github.com/chromedp/sysutil v1.0.0 // indirect
	github.com/cloudflare/circl v1.6.5 // indirect
	github.com/containerd/stargz-snapshotter/estargz v0.18.1 // indirect
	github.com/cpuguy83/go-md2man/v2 v2.0.7 // indirect
	github.com/cyphar/filepath-securejoin v0.6.1 // indirect
	github.com/davecgh/go-spew v1.1.2-0.20180830191138-d8f796af33cc // indirect
	github.com/davidmz/go-pageant v1.0.2 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
	github.com/distribution/reference v0.6.0 // indirect
	github.com/dlclark/regexp2 v1.11.4 // indirect
	github.com/docker/cli v29.0.3+incompatible // indirect
	github.com/docker/distribution v2.8.3+incompatible // indirect
	github.com/docker/docker-credential-helpers v0.9.3 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/emicklei/go-restful/v3 v3.12.2 // indirect
	github.com/emirpasic/gods v1.18.1 // indirect
	github.com/evanphx/json-patch/v5 v5.9.0 // indirect
	github.com/exponent-io/jsonpath v0.0.0-20210407135951-1de76d718b3f // indirect
	github.com/fatih/camelcase v1.0.0 // indirect
	github.com/fxamacker/cbor/v2 v2.9.0 // indirect
	github.com/gfleury/go-bitbucket-v1 v0.0.0-20220301131131-8e7ed04b843e // indirect
	github.com/go-errors/errors v1.4.2 // indirect
	github.com/go-fed/httpsig v1.1.0 // indirect
	github.com/go-git/gcfg v1.5.1-0.20230307220236-3a3c6141e376 // indirect
	github.com/go-git/go-billy/v5 v5.9.2 // indirect
	github.com/go-jose/go-jose/v3 v3.0.5 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/go-openapi/jsonpointer v0.21.0 // indirect
	github.com/go-openapi/jsonreference v0.21.0 // indirect
	github.com/go-openapi/swag v0.23.0 // indirect
	github.com/go-redis/cache/v9 v9.0.0 // indirect
	github.com/gobwas/httphead v0.1.0 // indirect
	github.com/gobwas/pool v0.2.1 // indirect
	github.com/gobwas/ws v1.2.1 // indirect
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/golang/groupcache v0.0.0-20241129210726-2c02b8208cf8 // indirect
	github.com/golang/protobuf v1.5.4 // indirect
	github.com/google/btree v1.1.3 // indirect
	github.com/google/gnostic-models v0.7.0 // indirect
	github.com/google/go-github/v66 v66.0.0 // indirect
	github.com/google/go-querystring v1.1.0 // indirect
	github.com/google/gofuzz v1.2.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/gorilla/css v1.0.1 // indirect
	github.com/gorilla/websocket v1.5.4-0.20250319132907-e064f32e3674 // indirect
	github.com/gosimple/slug v1.14.0 // indirect
	github.com/gosimple/unidecode v1.0.1 // indirect
	github.com/gregjones/httpcache v0.0.0-20190611155906-901d90724c79 // indirect
	github.com/grpc-ecosystem/go-grpc-middleware v1.4.0 // indirect
	github.com/grpc-ecosystem/grpc-gateway v1.16.0 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/hashicorp/go-retryablehttp v0.7.7 // indirect
	github.com/hashicorp/go-version v1.7.0 // indirect
	github.com/huandu/xstrings v1.5.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/itchyny/gojq v0.12.17 // indirect
	github.com/itchyny/timefmt-go v0.1.6 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.2 // indirect
	github.com/jbenet/go-context v0.0.0-20150711004518-d14ea06fba99 // indirect
	github.com/jeremywohl/flatten v1.0.1 // indirect
	github.com/jmespath/go-jmespath v0.4.0 // indirect
	github.com/jonboulle/clockwork v0.5.0 // indirect
	github.com/josharian/intern v1.0.0 // indirect
	github.com/json-iterator/go v1.1.12 // indirect
	github.com/kballard/go-shellquote v0.0.0-20180428030007-95032a82bc51 // indirect
	github.com/kevinburke/ssh_config v1.2.0 // indirect
	github.com/ktrysmt/go-bitbucket v0.9.81 // indirect
	github.com/liggitt/tabwriter v0.0.0-20181228230101-89fcab3d43de // indirect
	github.com/mailru/easyjson v0.7.7 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/mfridman/interpolate v0.0.2 // indirect
	github.com/microsoft/azure-devops-go-api/azuredevops v1.0.0-b5 // indirect
	github.com/mitchellh/copystructure v1.2.0 // indirect
	github.com/mitchellh/go-homedir v1.1.0 // indirect
	github.com/mitchellh/go-wordwrap v1.0.1 // indirect
	github.com/mitchellh/mapstructure v1.5.0 // indirect
	github.com/mitchellh/reflectwalk v1.0.2 // indirect
	github.com/moby/spdystream v0.5.1 // indirect
	github.com/moby/term v0.5.2 // indirect
	github.com/modern-go/concurrent v0.0.0-20180306012644-bacd9c7ef1dd // indirect
	github.com/modern-go/reflect2 v1.0.3-0.20250322232337-35a7c28c31ee // indirect
	github.com/monochromegane/go-gitignore v0.0.0-20200626010858-205db1a8cc00 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/mxk/go-flowrate v0.0.0-20140419014527-cca7078d478f // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	github.com/patrickmn/go-cache v2.1.0+incompatible // indirect
	github.com/pb33f/ordered-map/v2 v2.3.1 // indirect
	github.com/peterbourgon/diskv v2.0.1+incompatible // indirect
	github.com/pjbgf/sha1cd v0.7.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/prometheus/client_model v0.6.2 // indirect
	github.com/prometheus/common v0.66.1 // indirect
	github.com/prometheus/procfs v0.16.1 // indirect
	github.com/r3labs/diff v1.1.0 // indirect
	github.com/redis/go-redis/v9 v9.7.3 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	github.com/sergi/go-diff v1.3.2-0.20230802210424-5b0b94c5c0d3 // indirect
	github.com/sethvargo/go-retry v0.3.0 // indirect
	github.com/shopspring/decimal v1.4.0 // indirect
	github.com/skeema/knownhosts v1.3.1 // indirect
	github.com/spf13/cast v1.7.0 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/vbatts/tar-split v0.12.2 // indirect
	github.com/vmihailenco/go-tinylfu v0.2.2 // indirect
	github.com/vmihailenco/msgpack/v5 v5.3.4 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	github.com/xanzy/ssh-agent v0.3.3 // indirect
	github.com/xeipuuv/gojsonpointer v0.0.0-20190905194746-02993c407bfb // indirect
	github.com/xlab/treeprint v1.2.0 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc v0.56.0 // indirect
	go.opentelemetry.io/otel v1.44.0 // indirect
	go.opentelemetry.io/otel/metric v1.44.0 // indirect
	go.opentelemetry.io/otel/trace v1.44.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	go.yaml.in/yaml/v2 v2.4.3 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	go.yaml.in/yaml/v4 v4.0.0-rc.2 // indirect
	golang.org/x/exp v0.0.0-20260410095643-746e56fc9e2f // indirect
	gomodules.xyz/jsonpatch/v2 v2.4.0 // indirect
	google.golang.org/genproto v0.0.0-20240213162025-012b6fc9bca9 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260706201446-f0a921348800 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260706201446-f0a921348800 // indirect
	google.golang.org/grpc v1.84.0 // indirect
	gopkg.in/evanphx/json-patch.v4 v4.13.0 // indirect
	gopkg.in/inf.v0 v0.9.1 // indirect
	gopkg.in/warnings.v0 v0.1.2 // indirect
	gopkg.in/yaml.v2 v2.4.0 // indirect
	k8s.io/apiserver v0.35.1 // indirect
	k8s.io/cli-runtime v0.35.1 // indirect
	k8s.io/component-base v0.35.1 // indirect
	k8s.io/component-helpers v0.31.0 // indirect
	k8s.io/kube-aggregator v0.31.2 // indirect
	k8s.io/kube-openapi v0.0.0-20250910181357-589584f1c912 // indirect
	k8s.io/kubectl v0.35.1 // indirect
	k8s.io/kubernetes v1.31.0 // indirect
	modernc.org/libc v1.77.1 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
	oras.land/oras-go/v2 v2.6.2 // indirect
	sigs.k8s.io/randfill v1.0.0 // indirect
	sigs.k8s.io/structured-merge-diff/v4 v4.6.0 // indirect
)

replace (
	github.com/go-telegram-bot-api/telegram-bot-api/v5 => github.com/OvyFlash/telegram-bot-api/v5 v5.0.0-20240108230938-63e5c59035bf

	github.com/golang/protobuf => github.com/golang/protobuf v1.5.4
	github.com/grpc-ecosystem/grpc-gateway => github.com/grpc-ecosystem/grpc-gateway v1.16.0

	// Avoid CVE-2022-3064
	gopkg.in/yaml.v2 => gopkg.in/yaml.v2 v2.4.0

	// Avoid CVE-2022-28948
	gopkg.in/yaml.v3 => gopkg.in/yaml.v3 v3.0.1

	k8s.io/api => k8s.io/api v0.31.0
	k8s.io/apiextensions-apiserver => k8s.io/apiextensions-apiserver v0.31.0
	k8s.io/apimachinery => k8s.io/apimachinery v0.31.2
	k8s.io/apiserver => k8s.io/apiserver v0.31.0
	k8s.io/cli-runtime => k8s.io/cli-runtime v0.31.0
	k8s.io/client-go => k8s.io/client-go v0.31.0
	k8s.io/cloud-provider => k8s.io/cloud-provider v0.31.0
	k8s.io/cluster-bootstrap => k8s.io/cluster-bootstrap v0.31.0
	k8s.io/code-generator => k8s.io/code-generator v0.31.0
	k8s.io/component-base => k8s.io/component-base v0.31.0
	k8s.io/component-helpers => k8s.io/component-helpers v0.31.0
	k8s.io/controller-manager => k8s.io/controller-manager v0.31.0
	k8s.io/cri-api => k8s.io/cri-api v0.31.0
	k8s.io/cri-client => k8s.io/cri-client v0.31.0
	k8s.io/csi-translation-lib => k8s.io/csi-translation-lib v0.31.0
	k8s.io/dynamic-resource-allocation => k8s.io/dynamic-resource-allocation v0.31.0
	k8s.io/endpointslice => k8s.io/endpointslice v0.31.0
	k8s.io/kms => k8s.io/kms v0.31.0
	k8s.io/kube-aggregator => k8s.io/kube-aggregator v0.31.0
	k8s.io/kube-controller-manager => k8s.io/kube-controller-manager v0.31.0
	k8s.io/kube-proxy => k8s.io/kube-proxy v0.31.0
	k8s.io/kube-scheduler => k8s.io/kube-scheduler v0.31.0
	k8s.io/kubectl => k8s.io/kubectl v0.31.0
	k8s.io/kubelet => k8s.io/kubelet v0.31.0
	k8s.io/legacy-cloud-providers => k8s.io/legacy-cloud-providers v0.31.0
	k8s.io/metrics => k8s.io/metrics v0.31.0
	k8s.io/mount-utils => k8s.io/mount-utils v0.31.0
	k8s.io/pod-security-admission => k8s.io/pod-security-admission v0.31.0
	k8s.io/sample-apiserver => k8s.io/sample-apiserver v0.31.0
	k8s.io/sample-cli-plugin => k8s.io/sample-cli-plugin v0.31.0
	k8s.io/sample-controller => k8s.io/sample-controller v0.31.0
)

// The Kubernetes libraries stay at what Argo CD 2.14 is built with, 0.31. What follows is as old
// as they are, as the newer ones have other types and functions.

// Argo CD 2.14 hands its MkdirAll an int; from 0.4 on it takes an os.FileMode.
replace github.com/cyphar/filepath-securejoin => github.com/cyphar/filepath-securejoin v0.3.6

// Later versions use structured-merge-diff v6, client-go 0.31 uses v4.
replace k8s.io/kube-openapi => k8s.io/kube-openapi v0.0.0-20250318190949-c8a335a9a2ff

// Later versions use go.yaml.in/yaml, the kube-openapi above gopkg.in/yaml.v3.
replace github.com/google/gnostic-models => github.com/google/gnostic-models v0.6.9
