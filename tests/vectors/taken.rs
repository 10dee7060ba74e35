//! Invalid imports and continuations, and pipelines.

use git_handoff::model::digest::Digest;
use git_handoff::model::elsewhere::Import;
use git_handoff::model::entry::{Cause, Event};

use super::Vector;
use crate::common::chain_builder::ChainBuilder;
use crate::common::forge::{blob, gone, store_product};
use crate::elsewhere::forged as imports;
use crate::pipeline::forged as pipelines;
use crate::reuse::{continued, forged as reuse};

pub(super) const VECTORS: &[Vector] = &[
    Vector::new("reused-other-products", "an item says that it took other products than the other run has", |forge| {
        let mut run = reuse::taking(forge, |story| {
            story.products.values_mut().for_each(|product| product.size += 1);
        });
        rest(&mut run);
        forge.finish(run);
    }),
    Vector::new(
        "reused-with-another-manifest",
        "an item takes the products of one that had another manifest",
        |forge| {
            let mut run = reuse::taking(forge, |story| story.timeout = 1);
            rest(&mut run);
            forge.finish(run);
        },
    ),
    Vector::new("reused-with-other-inputs", "an item takes the products of one that consumed other bytes", |forge| {
        forge.finish(reuse::taking_with_inputs(forge));
    }),
    Vector::new(
        "reused-for-another-task",
        "an item takes the products of one that had something else to do",
        |forge| {
            let mut run = reuse::taking(forge, |story| story.item = "other");
            rest_of(&mut run, "make");
            forge.finish(run);
        },
    ),
    Vector::new("reused-from-another-base", "an item takes the products of a run with another base", |forge| {
        let mut run = reuse::taking(forge, |_| {});
        let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
        e.base = "1".repeat(40).parse().unwrap();
        rest(&mut run);
        forge.finish(run);
    }),
    Vector::new("reused-from-a-red-item", "an item takes the products of one that is red", |forge| {
        let mut run = reuse::taking(forge, reuse::red);
        rest_of(&mut run, "make");
        forge.finish(run);
    }),
    Vector::new("import-of-a-red-item", "a product of an item that is red", |forge| {
        forge.finish(imports::taking(forge, imports::of_red_item));
    }),
    Vector::new(
        "import-by-a-stranger",
        "a product of a run that a key conducted that the signers do not name",
        |forge| {
            forge.finish(imports::taking(forge, imports::by_another));
        },
    ),
    Vector::new("import-bytes", "a product from elsewhere whose bytes are not those of its SHA-256", |forge| {
        forge.finish(imports::taking(forge, |forge, story| {
            story.product.oid = forge.store.write_blob(b"else").unwrap();
        }));
    }),
    Vector::new(
        "import-of-an-added-item",
        "an actor adds an item that needs a product which entry 0 imports",
        |forge| {
            let more = br#"{"id":"more","executor":"command","inputs":{"command":["more"]},
            "needs":{"it":{"run":"first","from":"make","select":{"kind":"output","path":"report"}}}}"#;
            let mut run = imports::taking(forge, |_, story| story.open_ended = true);
            run.drafts.pop();
            run.state.sealed = false;
            run.extend(Cause::Actor, &[git_handoff::plan::parse_item(more).unwrap()]);
            run.close();
            run.seal();
            forge.finish(run);
        },
    ),
    Vector::new("import-of-other-bytes", "a product from elsewhere that the other run did not hand over", |forge| {
        forge.finish(imports::taking(forge, |forge, story| {
            story.product.sha256 = Digest::compute(b"else");
            story.product.oid = forge.store.write_blob(b"else").unwrap();
        }));
    }),
    Vector::new("import-without-need", "entry 0 has an import that the plan does not need", |forge| {
        let mut run = imports::taking(forge, |_, _| {});
        let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
        let import = Import { product: store_product(forge, b"more"), ..*e.imports.values().next().unwrap() };
        e.imports.insert("@run/first/make:outputs/more".to_owned(), import);
        forge.finish(run);
    }),
    Vector::new(
        "import-from-a-run-that-differs",
        "the run that was taken from is here, and sealed otherwise",
        |forge| {
            forge.finish(imports::taking(forge, |_, _| {}));
            imports::tell_first_otherwise(forge);
        },
    ),
    Vector::new("import-from-a-damaged-run", "the run that was taken from is here, with an entry changed", |forge| {
        forge.finish(imports::taking(forge, |_, _| {}));
        imports::damage_first(forge);
    }),
    Vector::new("continues-a-run-cut-short", "the evidence of the continued run lacks its last entry", |forge| {
        let first = continued::first(forge);
        forge.finish(continued::going_on(forge, &first, |story| drop(story.commits.pop())));
    }),
    Vector::new("pipeline-missing", "the pipeline that entry 0 names is not there", |forge| {
        forge.finish(pipelines::run(forge, |run, forge| pipelines::exchange(run, gone(forge))));
    })
    .with_gaps(),
    Vector::new("pipeline-bytes", "a pipeline whose bytes are not those that entry 0 names", |forge| {
        forge.finish(pipelines::run(forge, |run, forge| {
            let other = String::from_utf8_lossy(pipelines::SPEC).replacen("\"true\"", "\"TRUE\"", 1);
            pipelines::exchange(run, blob(forge, other.as_bytes()));
        }));
    }),
    Vector::new("pipeline-that-is-none", "a pipeline without blocks", |forge| {
        forge.finish(pipelines::run(forge, |run, forge| {
            pipelines::seal_other(run, forge, "p.one", br#"{"schemaVersion":1,"id":"p.one","blocks":[]}"#);
        }));
    }),
    Vector::new(
        "pipeline-of-another-name",
        "a pipeline with another `id` than the name under which it is sealed",
        |forge| {
            forge.finish(pipelines::run(forge, |run, forge| {
                let other = String::from_utf8_lossy(pipelines::SPEC).replace("p.one", "p.two");
                pipelines::seal_other(run, forge, "p.one", other.as_bytes());
            }));
        },
    ),
    Vector::new("pipeline-without-item", "entry 0 has a pipeline that no item names", |forge| {
        forge.finish(pipelines::run(forge, |run, forge| {
            let other = String::from_utf8_lossy(pipelines::SPEC).replace("p.one", "p.two");
            pipelines::seal_other(run, forge, "p.two", other.as_bytes());
        }));
    }),
    Vector::new("blocks-left-out", "the end of an attempt tells of fewer blocks than its pipeline has", |forge| {
        forge.finish(pipelines::run(forge, |run, _| pipelines::blocks(run, |blocks| blocks.truncate(3))));
    }),
    Vector::new("blocks-of-another-kind", "a block of another kind than the pipeline has there", |forge| {
        forge.finish(pipelines::run(forge, pipelines::forged("a block of another kind")));
    }),
    Vector::new("blocks-in-another-order", "the first two blocks in each other's place", |forge| {
        forge.finish(pipelines::run(forge, pipelines::forged("blocks that changed places")));
    }),
    Vector::new("blocks-with-another-verdict", "a block's check failed, and the item says that it passed", |forge| {
        forge.finish(pipelines::run(forge, pipelines::forged("a check that failed, of an item that is green")));
    }),
    Vector::new("blocks-without-the-capture", "an output of a pipeline that captures the patch alone", |forge| {
        forge.finish(pipelines::run(forge, pipelines::forged("a product that no block took")));
    }),
    Vector::new("manifest-without-its-pipeline", "a dispatch whose manifest does not name the pipeline", |forge| {
        forge.finish(pipelines::run(forge, |run, forge| {
            let Event::ItemFired(e) = &mut run.drafts[1].event else { panic!() };
            let bytes = forge.store.read_blob(e.manifest.oid).unwrap();
            let mut manifest = git_handoff::model::manifest::Manifest::parse(&bytes).unwrap();
            manifest.pipeline = None;
            e.manifest = store_product(forge, &manifest.canonical());
        }));
    }),
];

/// Has the item happen that was not taken.
pub(super) fn rest(run: &mut ChainBuilder<'_>) {
    rest_of(run, "other");
}

fn rest_of(run: &mut ChainBuilder<'_>, item: &str) {
    run.fire(item);
    run.done(item, &[]);
    run.seal();
}
