// Command troupe-cloud is troupe with cloud features: it also starts and tracks jobs in clouds.
package main

import (
	"github.com/troupe-engine/troupe/cloud"
	"github.com/troupe-engine/troupe/internal/cli"
)

func main() { cli.Main("troupe-cloud", &cloud.Addition{}) }
