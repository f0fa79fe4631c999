package apiservice

import "time"

const customGroup = "custom.metrics.k8s.io"

// API is a group and version of the Kubernetes API that Foresail serves.
type API struct {
	Group, Version string
	// Priority orders the versions of a group: clients that know several take the highest.
	Priority int32
	// Owner names the ClusterRole that owns an APIService which the Registrar creates: the garbage
	// collector removes one with the other. Empty is none.
	Owner string
	// TakeOver takes the APIService from another server.
	TakeOver bool
}

// Name is that of the APIService.
func (a API) Name() string { return a.Version + "." + a.Group }

// ExternalMetrics is external.metrics.k8s.io.
func ExternalMetrics(owner string, takeOver bool) API {
	return API{Group: "external.metrics.k8s.io", Version: "v1beta1", Priority: 100, Owner: owner, TakeOver: takeOver}
}

// CustomMetrics are the versions of custom.metrics.k8s.io. They are never taken from another
// server: HPAs read all metrics of the group by its preferred version, so that one server has them
// all.
func CustomMetrics(owner string) []API {
	return []API{
		{Group: customGroup, Version: "v1beta2", Priority: 200, Owner: owner},
		{Group: customGroup, Version: "v1beta1", Priority: 100, Owner: owner},
	}
}

// registration is the state of one API in Run.
type registration struct {
	API
	holder *Service // what the APIService led to when it was last reported; nil: never reported
	// settled reports whether the caBundle has been as specified once; disputed is the time since
	// which it no longer is.
	settled  bool
	disputed time.Time
}

// advice says what to do about another server that has the API.
func (a *registration) advice() string {
	if a.Group == customGroup {
		return "Leave --custom-metrics out, or remove the other server's APIService"
	}
	return "--apiservice=take-over takes them from it, and --forward-url keeps its metrics readable"
}

// alternative is how the API can be had while another server has it.
func (a *registration) alternative() string {
	if a.Group == customGroup {
		return ""
	}
	return ", or with --apiservice=take-over"
}
