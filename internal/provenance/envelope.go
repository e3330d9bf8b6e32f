package provenance

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/liftlock/liftlock/internal/discover/signature"
)

const (
	// PayloadType is the type of what our envelopes have.
	PayloadType = "application/vnd.in-toto+json"
	// MaxEnvelope bounds an envelope as JSON, in bytes: a statement of 50 targets with 20 images each has 200 kB.
	MaxEnvelope = 768 << 10
	// maxPayload bounds what is in one, so that the envelope fits.
	maxPayload = MaxEnvelope/4*3 - 4<<10
	// maxSignatures bounds what is verified of one.
	maxSignatures = 10
	// maxSubjects bounds what one statement is about, as sigstore-go does.
	maxSubjects = 1024
	// maxShown bounds what is shown of a statement's own words.
	maxShown = 200
)

// Envelope is a signed statement of which nothing is verified yet.
type Envelope struct {
	payload    []byte
	signatures []dsse.Signature
}

// ParseEnvelope reads a DSSE envelope as JSON. It refuses another payload than in-toto's, and what is larger than
// [MaxEnvelope]. The error says what isn't an envelope's.
func ParseEnvelope(text []byte) (*Envelope, error) {
	if len(text) > MaxEnvelope {
		return nil, fmt.Errorf("an envelope has more than %d bytes", MaxEnvelope)
	}
	var in dsse.Envelope
	if json.Unmarshal(text, &in) != nil {
		return nil, errors.New("it is no DSSE envelope as JSON")
	}
	switch {
	case in.PayloadType == "" || in.Payload == "":
		return nil, errors.New("it is no DSSE envelope: payloadType and payload are needed")
	case in.PayloadType != PayloadType:
		return nil, fmt.Errorf("the envelope has %s and not %s", bounded(in.PayloadType), PayloadType)
	case len(in.Signatures) == 0:
		return nil, errors.New("the envelope has no signature")
	case len(in.Signatures) > maxSignatures:
		return nil, fmt.Errorf("the envelope has %d signatures, more than %d", len(in.Signatures), maxSignatures)
	}
	payload, err := in.DecodeB64Payload()
	if err != nil {
		return nil, errors.New("the envelope's payload is no base64")
	}
	return &Envelope{payload: payload, signatures: in.Signatures}, nil
}

// Digest is the sha256 of the statement in the envelope, in hex: what the next environment's statement names it by.
func (e *Envelope) Digest() string { return digestOf(e.payload) }

// Payload is the statement's bytes, of which nothing is verified.
func (e *Envelope) Payload() []byte { return slices.Clone(e.payload) }

func digestOf(payload []byte) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:])
}

// Proven is a statement whose signature was verified.
type Proven struct {
	Digest    string // of the statement, as [Envelope.Digest]
	Key       *signature.Key
	Predicate string // its type
	Subjects  []Subject
	Record    *Record // of [PromotionPredicate]; nil: it is of another type
}

// Verify returns the statement of an envelope that one of the keys signed. The error says why there is none: no key fits,
// or what is signed is no statement.
func Verify(e *Envelope, keys []*signature.Key) (*Proven, error) {
	by := e.signedBy(keys)
	if by == nil {
		return nil, e.refuseKeys(keys)
	}
	var s Statement
	if err := decodeOne(e.payload, &s); err != nil || s.Type != StatementType {
		return nil, fmt.Errorf("what is signed is no statement of the type %s", StatementType)
	}
	if len(s.Subject) == 0 || len(s.Subject) > maxSubjects {
		return nil, fmt.Errorf("a statement is about %d things, and not about 1 to %d", len(s.Subject), maxSubjects)
	}
	out := &Proven{Digest: e.Digest(), Key: by, Predicate: s.PredicateType, Subjects: s.Subject}
	if s.PredicateType != PromotionPredicate {
		return out, nil
	}
	out.Record = new(Record)
	if err := decodeOne(s.Predicate, out.Record); err != nil {
		return nil, fmt.Errorf("the predicate of a statement isn't as %s has it", PromotionPredicate)
	}
	if err := out.Record.check(); err != nil {
		return nil, err
	}
	if !out.isAbout("gitCommit", out.Record.Commit) {
		return nil, errors.New("a statement isn't about the commit that it names")
	}
	return out, nil
}

// decodeOne reads one JSON value; anything behind it is an error.
func decodeOne(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(into); err != nil {
		return err
	}
	if dec.More() {
		return errors.New("there is more behind it")
	}
	return nil
}

// signedBy is the first of the keys that signed; nil: none. A signature that names a key counts by that one alone.
func (e *Envelope) signedBy(keys []*signature.Key) *signature.Key {
	signed := dsse.PAE(PayloadType, e.payload)
	for _, s := range e.signatures {
		sig, err := base64.StdEncoding.DecodeString(s.Sig)
		if err != nil {
			continue
		}
		for _, k := range keys {
			if (s.KeyID == "" || s.KeyID == k.ID()) && k.Signed(signed, sig) {
				return k
			}
		}
	}
	return nil
}

// refuseKeys says why no signature counts.
func (e *Envelope) refuseKeys(keys []*signature.Key) error {
	if len(keys) == 0 {
		return errors.New("there is no key by which a statement is verified")
	}
	named := e.signatures[0].KeyID
	for _, k := range keys {
		if k.ID() == named {
			return fmt.Errorf("the signature by the key %s is wrong: the statement was changed", k)
		}
	}
	if named == "" {
		return errors.New("it is not signed by any of the keys, or was changed")
	}
	return fmt.Errorf("it is signed by the key sha256:%s, which is none of the keys", bounded(named))
}

// isAbout says that a digest is one of the statement's subjects.
func (p *Proven) isAbout(algorithm, digest string) bool {
	return digest != "" && slices.ContainsFunc(p.Subjects, func(s Subject) bool { return s.Digest[algorithm] == digest })
}

// bounded is a statement's own word, for people.
func bounded(text string) string {
	if len(text) > maxShown {
		text = text[:maxShown]
	}
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return -1
		}
		return r
	}, text), "")
}
