//! Every source of events does what it must.

use async_trait::async_trait;
use unprovision::NodeUuid;
use unprovision::events::{Hint, Said, Sender, channel};
use unprovision_testkit::conformance::events::{Mouth, run_all};

#[async_trait]
impl Mouth for Ours {
    async fn hint(&self, node: NodeUuid) {
        let reason = "a test".to_owned();
        let said_at = None;
        assert!(
            self.0
                .say(Said::Hint(Hint {
                    node,
                    reason,
                    said_at
                }))
                .await
        );
    }

    async fn garbage(&self) {
        assert!(self.0.say(Said::Unreadable("garbage".to_owned())).await);
    }
}

#[derive(Debug)]
struct Ours(Sender);

#[tokio::test]
async fn the_source_within_the_process() {
    run_all(async || {
        let (sender, source) = channel(1000);
        (source, Box::new(Ours(sender)) as Box<dyn Mouth>)
    })
    .await;
}
