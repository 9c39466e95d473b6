package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/internal/cli/console"
)

// HealthCommand checks the health of a member.
type HealthCommand struct {
	console.RemoteFlags
	Live    bool          `help:"Check only that the process responds."`
	Timeout time.Duration `default:"5s" help:"Time limit for the response (${default})."`
}

// Help describes the purpose of the command.
func (HealthCommand) Help() string {
	return `Exits with 0 if the member is ready: it holds its lease and can write to its store. No token or client certificate is needed.
Use it for health checks of containers.`
}

// Run fetches the health of the member, and returns an error if the member is not ready.
func (c *HealthCommand) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	defer server.Close()
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	ask, well := server.Ready, "ready"
	if c.Live {
		ask, well = server.Alive, "alive"
	}
	if err := ask(ctx); err != nil {
		return err
	}
	if c.IsJSON() {
		return console.PrintJSON(a.Stdout, map[string]string{"status": well})
	}
	fmt.Fprintln(a.Stdout, well)
	return nil
}
