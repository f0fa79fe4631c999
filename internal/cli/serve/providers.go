package serve

import (
	"github.com/foresail/foresail/nodepool/ec2"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/simulated"
)

// registeredProviders lists all providers of worker nodes. A new one is added here.
func registeredProviders() []provider.Registration {
	return []provider.Registration{ec2.Registration(), simulated.Registration()}
}
