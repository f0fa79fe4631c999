// Package simulated is a cloud whose instances exist in the Kubernetes API alone, to try pools out where kwok simulates
// the kubelets. It models only the cloud: it knows nothing of pools but their names.
//
// Each instance is a ConfigMap, named by the instance's id, which is a hash of the launch's token: the API server
// itself rejects a second instance of a token, even in concurrent launches. [Cloud.Step] advances such a cloud in
// time: instances begin to run, their Nodes join, and terminated ones stop. Any number of processes may take steps.
//
// Failures of a cloud are injected: the annotations of an instance's ConfigMap make one instance fail, and the
// ConfigMap [FaultsName] in the same namespace the whole cloud.
package simulated
