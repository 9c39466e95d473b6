package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// tokenCmd groups the commands for access tokens, besides those that a member was started with.
type tokenCmd struct {
	Create tokenCreateCmd `cmd:"" help:"Make a token with a role, and show it this once."`
	List   tokenListCmd   `cmd:"" help:"List the tokens: role, and when each was used last."`
	Delete tokenDeleteCmd `cmd:"" help:"Delete tokens: they are good no longer."`
}

type tokenCreateCmd struct {
	remoteFlags
	Name    string        `arg:"" help:"Who has it, or what for."`
	Role    string        `enum:"viewer,approver,operator,author,admin,worker" required:"" help:"What who has it may do: viewer, approver, operator, author, admin or worker."`
	Expires time.Duration `default:"0s" help:"How long it is good, such as 2160h. Default: until it is deleted."`
}

func (c *tokenCreateCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	made, err := server.CreateToken(ctx, wire.CreateToken{Name: c.Name, Role: c.Role, ExpiresInMS: c.Expires.Milliseconds()})
	switch {
	case err != nil:
		return err
	case c.isJSON():
		return printJSON(a.stdout, made)
	}
	if err := printFields(a.stdout, "Name", made.Name, "Role", made.Role, "Expires",
		momentOrNone(made.ExpiresAt), "Token", made.Secret); err != nil {
		return err
	}
	fmt.Fprintln(a.stderr, "The token is shown this once.")
	return nil
}

type tokenListCmd struct{ remoteFlags }

func (c *tokenListCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	tokens, err := server.Tokens(ctx)
	if err != nil {
		return err
	}
	t := table{header: []string{"NAME", "ROLE", "LAST USED", "EXPIRES", "MADE", "BY"}, spare: []string{"BY", "MADE"}}
	return printPage(a, c.outputFlag, tokens, t, func(k *wire.Token) []string {
		return []string{k.Name, k.Role, orElse(momentOrNone(k.LastUsedAt), "never"),
			orElse(momentOrNone(k.ExpiresAt), "never"), formatTime(k.CreatedAt), k.CreatedBy}
	})
}

type tokenDeleteCmd struct {
	remoteFlags
	Tokens []string `arg:"" name:"name" help:"Names or ids of the tokens."`
}

func (c *tokenDeleteCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	for _, name := range c.Tokens {
		deleted, err := server.DeleteToken(ctx, name)
		switch {
		case err != nil:
			return err
		case c.isJSON():
			err = printLine(a.stdout, deleted)
		default:
			_, err = fmt.Fprintf(a.stdout, "%s is deleted\n", sanitizeText(deleted.Name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
