package git

import (
	"fmt"
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/liftlock/liftlock/internal/wording"
)

// emptyTree is the id of the tree without entries, which git knows without
// having it stored.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// Mode is a tree entry's kind as git stores it.
type Mode uint32

// The modes that git writes.
const (
	Directory  Mode = 0o040000
	Regular    Mode = 0o100644
	Executable Mode = 0o100755
	Symlink    Mode = 0o120000
	Submodule  Mode = 0o160000
)

// String is the mode as git prints it: six octal digits.
func (m Mode) String() string { return fmt.Sprintf("%06o", uint32(m)) }

// FS is the mode in io/fs's terms; a submodule is irregular.
func (m Mode) FS() fs.FileMode {
	switch m & 0o170000 {
	case Directory:
		return fs.ModeDir | 0o555
	case Symlink:
		return fs.ModeSymlink | 0o777
	case Submodule:
		return fs.ModeIrregular
	}
	if m&0o100 != 0 {
		return 0o555
	}
	return 0o444
}

// isSHA says that a text is a full object id.
func isSHA(s string) bool {
	if len(s) != 40 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// checkSHA refuses what is not a full object id, so that nothing from outside
// is ever read as an option or as git's revision syntax.
func checkSHA(sha string) error {
	if !isSHA(sha) {
		return &Error{Op: fmt.Sprintf("commit %q", shortenForLog(sha)), Kind: ErrInvalid,
			Hint: "40 hexadecimal digits in lower case are expected"}
	}
	return nil
}

// maxBranch bounds a branch's name, in bytes. GitHub takes a ref of 255 with its refs/heads/, and
// Gitea stores 255. Where a Git server keeps it in a file, the name of that file's .lock must be at
// most 255, as file systems take no longer one.
const maxBranch = 244

// checkBranch holds git's rules for branch names (git help check-ref-format).
func checkBranch(name string) error {
	bad := func(why string) error {
		return &Error{Op: fmt.Sprintf("branch %q", shortenForLog(name)), Kind: ErrInvalid, Hint: why}
	}
	switch {
	case name == "" || len(name) > maxBranch:
		return bad(fmt.Sprintf("a branch name has 1 to %d bytes, and this one %d", maxBranch, len(name)))
	case !utf8.ValidString(name):
		return bad("a branch name is UTF-8")
	case strings.HasPrefix(name, "-") || name == "HEAD" || name == "@":
		return bad("this can't be the name of a branch")
	case strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.HasSuffix(name, "."):
		return bad("a branch name has no '..' or '@{' and no '.' at its end")
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`~^:?*[\`, r) }):
		return bad(`a branch name has no spaces, control characters or any of ~^:?*[\`)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return bad("between slashes a branch name has something that neither starts with '.' nor ends in '.lock'")
		}
	}
	return nil
}

// checkWritePath refuses paths that Liftlock must not write. They lead out of the tree, some system
// takes them for git's own folder, or a reviewer or a script would misread their names (control
// characters, quotes, a leading dash). Reading such files works.
func checkWritePath(p string) error {
	bad := func(why string) error {
		return &Error{Op: fmt.Sprintf("write %q", shortenForLog(p)), Kind: ErrInvalid, Hint: why}
	}
	switch {
	case p == "" || p == "." || len(p) > 4096:
		return bad("a path has 1 to 4096 bytes and names a file")
	case !utf8.ValidString(p):
		return bad("a path is UTF-8")
	case strings.ContainsFunc(p, unicode.IsControl):
		return bad("control characters and newlines in paths are not written")
	case strings.ContainsAny(p, `"'\`):
		return bad("quotes and backslashes in paths are not written")
	}
	for part := range strings.SplitSeq(p, "/") {
		switch {
		case part == "" || part == "." || part == "..":
			return bad("a path is relative to the repository's root and has no empty, '.' or '..' part")
		case len(part) > 255:
			return bad("a part of a path has at most 255 bytes")
		case strings.HasPrefix(part, "-"):
			return bad("names that look like options are not written")
		case gitFolder(part):
			return bad("git's own folder is not written")
		}
	}
	return nil
}

// gitFolder says whether some file system takes the name for .git. It knows any case, NTFS's short
// names, trailing dots, spaces and streams, and the characters that HFS+ ignores (git's verify_path
// and fsck hold the same).
func gitFolder(name string) bool {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, name)
	name, _, _ = strings.Cut(name, ":")
	name = strings.ToLower(strings.TrimRight(name, ". "))
	return name == ".git" || strings.HasPrefix(name, "git~")
}

func checkIdent(who string, id Ident) error {
	isComplete := id.Name != "" && id.Email != ""
	hasSpaces := strings.TrimSpace(id.Name) != id.Name || strings.ContainsAny(id.Email, " \t")
	if !isComplete || hasSpaces || strings.ContainsAny(id.Name+id.Email, "<>\n\x00") {
		return &Error{Op: fmt.Sprintf("%s %q <%q>", who, shortenForLog(id.Name), shortenForLog(id.Email)), Kind: ErrInvalid,
			Hint: "a name and an e-mail address without <, > and line breaks are needed"}
	}
	return nil
}

// shortenForLog keeps hostile input from filling a log.
func shortenForLog(s string) string { return wording.Clip(s, 100) }
