// Package signature says whether a signature that lies beside an image in its registry counts. It reads the two forms that
// cosign attaches: a signed payload of the image's digest, and a sigstore bundle that attests the digest.
//
// It is pure: bytes come in, a verdict comes out. It knows no registry, no file and no clock. A signature without all
// that a policy wants counts as none, and so does one that can't be read: nothing is verified in part.
package signature
