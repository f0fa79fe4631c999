package controlplane

import "fmt"

// The kubelets' lease is renewed every quarter of its duration. A minute and a half between
// renewals keeps idle clusters quiet; a node is taken for lost only when several of them failed.
const (
	nodeLeaseSeconds       = 360
	nodeMonitorGracePeriod = "300s"
)

// arguments returns the command line of a component, the caller's own flags last so that they win.
func (c *Cluster) arguments(component Component) []string {
	build := map[Component]func() []string{
		Etcd:              c.etcdArguments,
		APIServer:         func() []string { return append(c.apiServerArguments(), c.auditArguments()...) },
		ControllerManager: c.controllerManagerArguments,
		Scheduler:         c.schedulerArguments,
		Kwok:              c.kwokArguments,
	}
	return append(build[component](), c.options.ExtraArgs[component]...)
}

func (c *Cluster) etcdArguments() []string {
	client, peer := "http://"+c.slot.address(etcdClientPort), "http://"+c.slot.address(etcdPeerPort)
	return []string{
		"--name=default",
		"--data-dir=" + c.file("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		// Nothing here is worth a disk's time.
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

func (c *Cluster) apiServerArguments() []string {
	return []string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.slot.port(apiServerPort)),
		"--etcd-servers=" + c.EtcdURL(),
		"--tls-cert-file=" + c.file("apiserver.crt"),
		"--tls-private-key-file=" + c.file("apiserver.key"),
		"--client-ca-file=" + c.file("ca.crt"),
		"--service-account-issuer=" + serviceAccountIssuer,
		"--service-account-key-file=" + c.file("service-account.key"),
		"--service-account-signing-key-file=" + c.file("service-account.key"),
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range=10.96.0.0/16",
		// The aggregation layer: who the API server is towards aggregated servers. Services are
		// resolved by their definition, not their endpoints, because of ExternalName.
		"--requestheader-client-ca-file=" + c.file("front-proxy-ca.crt"),
		"--requestheader-allowed-names=" + frontProxyUser,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.file("front-proxy.crt"),
		"--proxy-client-key-file=" + c.file("front-proxy.key"),
		"--enable-aggregator-routing=false",
		// A single API server need not publish its address, and 127.0.0.1 is no valid endpoint.
		"--endpoint-reconciler-type=none",
		// Housekeeping that pays only on clusters that live for days or serve crowds.
		"--enable-priority-and-fairness=false",
		"--etcd-compaction-interval=0",
		"--etcd-count-metric-poll-period=0",
		"--etcd-db-metric-poll-interval=0",
		"--profiling=false",
	}
}

func (c *Cluster) auditArguments() []string {
	if c.options.AuditPolicy == nil {
		return nil
	}
	return []string{
		"--audit-policy-file=" + c.file("audit-policy.yaml"),
		"--audit-log-path=" + c.AuditLog(),
		"--audit-log-mode=blocking",
		"--audit-log-maxsize=100000", // megabytes, so that it stays one file
	}
}

func (c *Cluster) controllerManagerArguments() []string {
	kubeconfig := c.file("kube-controller-manager.kubeconfig")
	return []string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.slot.port(controllerManagerPort)),
		"--tls-cert-file=" + c.file("loopback.crt"),
		"--tls-private-key-file=" + c.file("loopback.key"),
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		// As on a real cluster, each controller has the permissions of its own service account and no more.
		"--use-service-account-credentials=true",
		// To fetch those at the default 20 requests a second takes four seconds. It also lets the
		// HPA controller read more metrics than it could elsewhere: tests about that set the rate
		// back.
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		"--service-account-private-key-file=" + c.file("service-account.key"),
		"--root-ca-file=" + c.file("ca.crt"),
		"--node-monitor-grace-period=" + nodeMonitorGracePeriod,
		"--profiling=false",
	}
}

func (c *Cluster) schedulerArguments() []string {
	kubeconfig := c.file("kube-scheduler.kubeconfig")
	return []string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.slot.port(schedulerPort)),
		"--tls-cert-file=" + c.file("loopback.crt"),
		"--tls-private-key-file=" + c.file("loopback.key"),
		"--config=" + c.file("kube-scheduler.yaml"),
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
	}
}

func (c *Cluster) kwokArguments() []string {
	return []string{
		"--kubeconfig=" + c.file("kwok.kubeconfig"),
		"--config=" + c.file("kwok.yaml"),
		"--manage-all-nodes=true",
		"--cidr=" + c.podCIDR.String(),
		"--node-ip=127.0.0.1",
		fmt.Sprintf("--node-port=%d", c.slot.port(kwokPort)), // as for a kubelet, with a certificate of its own
		fmt.Sprintf("--node-lease-duration-seconds=%d", nodeLeaseSeconds),
		"--server-address=" + c.slot.address(kwokPort),
	}
}
