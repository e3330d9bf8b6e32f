package forge

// CodeownersFiles lists where a forge of a type of the server's file looks for CODEOWNERS; the
// first that is there counts. Gitea's documentation: "Code Owners"; GitHub's: "About code
// owners"; GitLab's: "Code Owners". Forgejo, which its API doesn't always tell from Gitea, has
// one place more, where it looks last.
func CodeownersFiles(forgeType string) []string {
	switch forgeType {
	case "gitea":
		return []string{"CODEOWNERS", "docs/CODEOWNERS", ".gitea/CODEOWNERS", ".forgejo/CODEOWNERS"}
	case "gitlab":
		return []string{"CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"}
	}
	return []string{".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"}
}
