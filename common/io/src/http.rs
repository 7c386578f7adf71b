//! The small HTTP server of each binary: `/metrics`, `/healthz`, `/readyz`.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use prometheus::{Encoder, Registry, TextEncoder};
use tokio::net::TcpListener;

use crate::shutdown::Shutdown;

/// Why the process is not ready, or nothing.
pub type Readiness = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Routes over a registry and a readiness test; merge further routes into it.
pub fn routes(registry: Registry, readiness: Readiness) -> Router {
    Router::new()
        .route("/metrics", get(move || async move { metrics(&registry) }))
        .route("/healthz", get(|| async { "ok\n" }))
        .route(
            "/readyz",
            get(move || async move {
                match readiness() {
                    Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
                    Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")),
                }
            }),
        )
}

fn metrics(registry: &Registry) -> impl IntoResponse + use<> {
    let mut page = Vec::new();
    let encoder = TextEncoder::new();
    match encoder.encode(&registry.gather(), &mut page) {
        Ok(()) => ([(header::CONTENT_TYPE, encoder.format_type().to_owned())], page).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("encode metrics: {error}\n")).into_response(),
    }
}

/// Binds now, so that an address in use is an error of the start; serves until shutdown.
pub async fn serve(address: SocketAddr, routes: Router, mut shutdown: Shutdown) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    tokio::spawn(async move {
        let ended = axum::serve(listener, routes).with_graceful_shutdown(async move {
            shutdown.requested().await;
        });
        if let Err(error) = ended.await {
            tracing::warn!(%error, "http server ended");
        }
    });
    Ok(bound)
}
