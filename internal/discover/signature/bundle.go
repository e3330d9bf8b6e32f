package signature

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

const (
	// BundleType begins the media types of sigstore's bundles, in whichever version.
	BundleType = "application/vnd.dev.sigstore.bundle"
	// MaxBundle bounds a bundle, in bytes: certificates and proofs of a log have some kilobytes.
	MaxBundle = 512 << 10
	// maxSubjects bounds what one bundle is about, as sigstore-go does.
	maxSubjects = 1024
)

const (
	// statementType begins the types of in-toto's statements, payloadType is that of what has one.
	statementType = "https://in-toto.io/Statement/"
	payloadType   = "application/vnd.in-toto+json"
	// SignPredicate is what cosign's signatures attest, apart from provenance and the like (cosign: pkg/types/predicate.go).
	SignPredicate = "https://sigstore.dev/cosign/sign/v1"
)

// statement is what a bundle attests.
type statement struct {
	Type          string `json:"_type"`
	PredicateType string `json:"predicateType"`
	Subject       []struct {
		Digest map[string]string `json:"digest"`
	} `json:"subject"`
}

// CheckBundle says whether a sigstore bundle, as JSON, is a signature that counts for an image; nil: it is. Bundles name no
// repository. The error is a [Refusal].
func (p *Policy) CheckBundle(data []byte, of Image) error {
	if len(data) > MaxBundle {
		return refuseUnreadable(fmt.Sprintf("it has more than %d bytes", MaxBundle))
	}
	bundle := new(protobundle.Bundle)
	if protojson.Unmarshal(data, bundle) != nil {
		return refuseUnreadable("it is no sigstore bundle")
	}
	if !strings.HasPrefix(bundle.GetMediaType(), BundleType) {
		return refuseUnreadable("it is no sigstore bundle, but " + shown(bundle.GetMediaType()))
	}
	envelope := bundle.GetDsseEnvelope()
	switch {
	case envelope == nil:
		return refuseUnreadable("its bundle has no envelope, such as of a file's signature")
	case envelope.GetPayloadType() != payloadType:
		return refuseUnreadable("its envelope has no statement of in-toto's")
	case len(envelope.GetSignatures()) != 1:
		// Of several, one could be by the key and another one's words count (sigstore-go: ErrDSSEInvalidSignatureCount).
		return refuseUnreadable(fmt.Sprintf("its envelope has %d signatures and not one", len(envelope.GetSignatures())))
	}
	signed := dsse.PAE(envelope.GetPayloadType(), envelope.GetPayload())
	if !p.Key.Signed(signed, envelope.GetSignatures()[0].GetSig()) {
		return p.refuseKey()
	}
	return checkStatement(envelope.GetPayload(), of)
}

// checkStatement refuses what attests something else than that an image is signed.
func checkStatement(payload []byte, of Image) error {
	var attested statement
	if json.Unmarshal(payload, &attested) != nil || !strings.HasPrefix(attested.Type, statementType) {
		return refuseUnreadable("its envelope has no statement of in-toto's")
	}
	switch {
	case attested.PredicateType != SignPredicate:
		return refuse(rankOtherImage, "a bundle is no signature, but attests %s", shown(attested.PredicateType))
	case len(attested.Subject) > maxSubjects:
		return refuseUnreadable(fmt.Sprintf("it is about more than %d things", maxSubjects))
	}
	about := ""
	for _, s := range attested.Subject {
		if about = "sha256:" + s.Digest["sha256"]; about == of.Digest {
			return nil
		}
	}
	if about == "" {
		return refuse(rankOtherImage, "a signature is of nothing")
	}
	return refuse(rankOtherImage, "a signature is of another digest, %s", shown(about))
}
