//! Invalid imports and continuations, and pipelines.

use git_handoff::model::digest::Digest;
use git_handoff::model::entry::{Cause, Event};

use super::Vector;
use crate::common::teller::Teller;
use crate::elsewhere::forged as imports;
use crate::pipeline::forged as pipelines;
use crate::reuse::{continued, forged as reuse};

pub(super) const VECTORS: &[Vector] = &[
    Vector::new("reused-other-products", "an item says that it took other products than the other run has", |lab| {
        let mut run = reuse::taking(lab, |story| {
            story.products.values_mut().for_each(|product| product.size += 1);
        });
        rest(&mut run);
        lab.finish(run);
    }),
    Vector::new(
        "reused-with-another-manifest",
        "the manifest in the evidence is not the one that was dispatched",
        |lab| {
            let mut run = reuse::taking(lab, |story| story.evidence.manifest.attempt = 2);
            rest(&mut run);
            lab.finish(run);
        },
    ),
    Vector::new("reused-for-another-task", "an item takes the products of one that had something else to do", |lab| {
        let mut run = reuse::taking(lab, |story| story.item = "other");
        rest_of(&mut run, "make");
        lab.finish(run);
    }),
    Vector::new("reused-from-a-red-item", "an item takes the products of one that is red", |lab| {
        let mut run = reuse::taking(lab, reuse::red);
        rest_of(&mut run, "make");
        lab.finish(run);
    }),
    Vector::new("import-of-a-red-item", "a product of an item that is red", |lab| {
        lab.finish(imports::taking(lab, imports::of_red_item));
    }),
    Vector::new(
        "import-by-a-stranger",
        "a product of a run that a key conducted that the signers do not name",
        |lab| {
            lab.finish(imports::taking(lab, imports::by_another));
        },
    ),
    Vector::new("import-bytes", "a product from elsewhere whose bytes are not those of its SHA-256", |lab| {
        lab.finish(imports::taking(lab, |lab, story| story.product.oid = lab.store.write_blob(b"else").unwrap()));
    }),
    Vector::new("import-of-an-added-item", "an actor adds an item that needs a product which entry 0 imports", |lab| {
        let more = br#"{"id":"more","executor":"command","inputs":{"command":["more"]},
            "needs":{"it":{"run":"first","from":"make","select":{"kind":"output","path":"report"}}}}"#;
        let mut run = imports::taking(lab, |_, story| story.open_ended = true);
        run.drafts.pop();
        run.state.sealed = false;
        run.extend(Cause::Actor, &[git_handoff::plan::parse_item(more).unwrap()]);
        run.close();
        run.seal();
        lab.finish(run);
    }),
    Vector::new("import-of-other-bytes", "a product from elsewhere that the other run did not hand over", |lab| {
        lab.finish(imports::taking(lab, |lab, story| {
            story.product.sha256 = Digest::of(b"else");
            story.product.oid = lab.store.write_blob(b"else").unwrap();
        }));
    }),
    Vector::new("import-without-need", "entry 0 has an import that the plan does not need", |lab| {
        lab.finish(imports::taking(lab, |_, story| {
            "@run/first/make:outputs/more".clone_into(&mut story.name);
        }));
    }),
    Vector::new("import-from-a-run-that-differs", "the run that was taken from is here, and sealed otherwise", |lab| {
        lab.finish(imports::taking(lab, |_, _| {}));
        imports::tell_first_otherwise(lab);
    }),
    Vector::new("import-from-a-damaged-run", "the run that was taken from is here, with an entry changed", |lab| {
        lab.finish(imports::taking(lab, |_, _| {}));
        imports::damage_first(lab);
    }),
    Vector::new("continues-a-run-cut-short", "the evidence of the continued run lacks its last entry", |lab| {
        let first = continued::first(lab);
        lab.finish(continued::going_on(lab, &first, |story| drop(story.commits.pop())));
    }),
    Vector::new("pipeline-not-in-the-tree", "the tree does not hold the pipeline that entry 0 names", |lab| {
        lab.finish(pipelines::run(lab, |run, _| {
            run.drafts[0].edits.retain(|(path, _)| !path.starts_with("pipelines/"));
        }));
    }),
    Vector::new("pipeline-exchanged", "another pipeline in the place of the one that entry 0 names", |lab| {
        lab.finish(pipelines::run(lab, |run, lab| {
            let other = String::from_utf8_lossy(pipelines::SPEC).replacen("\"true\"", "\"TRUE\"", 1);
            run.drafts[0].edits.last_mut().unwrap().1 = crate::common::lab::blob(lab, other.as_bytes());
        }));
    }),
    Vector::new("pipeline-that-is-none", "a pipeline without blocks", |lab| {
        lab.finish(pipelines::run(lab, |run, lab| {
            pipelines::seal_other(run, lab, "p.one", br#"{"schemaVersion":1,"id":"p.one","blocks":[]}"#);
        }));
    }),
    Vector::new(
        "pipeline-of-another-name",
        "a pipeline with another `id` than the name under which it is sealed",
        |lab| {
            lab.finish(pipelines::run(lab, |run, lab| {
                let other = String::from_utf8_lossy(pipelines::SPEC).replace("p.one", "p.two");
                pipelines::seal_other(run, lab, "p.one", other.as_bytes());
            }));
        },
    ),
    Vector::new("pipeline-without-item", "entry 0 has a pipeline that no item names", |lab| {
        lab.finish(pipelines::run(lab, |run, lab| {
            let other = String::from_utf8_lossy(pipelines::SPEC).replace("p.one", "p.two");
            pipelines::seal_other(run, lab, "p.two", other.as_bytes());
        }));
    }),
    Vector::new("blocks-left-out", "the end of an attempt tells of fewer blocks than its pipeline has", |lab| {
        lab.finish(pipelines::run(lab, |run, _| pipelines::blocks(run, |told| told.truncate(3))));
    }),
    Vector::new("blocks-of-another-kind", "a block of another kind than the pipeline has there", |lab| {
        lab.finish(pipelines::run(lab, pipelines::forged("a block of another kind")));
    }),
    Vector::new("blocks-in-another-order", "the first two blocks in each other's place", |lab| {
        lab.finish(pipelines::run(lab, pipelines::forged("blocks that changed places")));
    }),
    Vector::new("blocks-with-another-verdict", "a block's check failed, and the item says that it passed", |lab| {
        lab.finish(pipelines::run(lab, pipelines::forged("a check that failed, of an item that is green")));
    }),
    Vector::new("blocks-without-the-capture", "an output of a pipeline that captures the patch alone", |lab| {
        lab.finish(pipelines::run(lab, pipelines::forged("a product that no block took")));
    }),
    Vector::new("manifest-without-its-pipeline", "a dispatch whose manifest does not name the pipeline", |lab| {
        lab.finish(pipelines::run(lab, |run, lab| {
            let draft = &mut run.drafts[1];
            let Event::ItemFired(e) = &mut draft.event else { panic!() };
            let (_, edit) = draft.edits.iter_mut().find(|(path, _)| path.ends_with("manifest.json")).unwrap();
            let held = lab.store.read_blob(super::forged::oid(edit)).unwrap();
            let mut manifest = git_handoff::model::manifest::Manifest::parse(&held).unwrap();
            manifest.pipeline = None;
            e.manifest = Digest::of(&manifest.canonical());
            *edit = crate::common::lab::blob(lab, &manifest.canonical());
        }));
    }),
];

/// Has the item happen that was not taken.
pub(super) fn rest(run: &mut Teller<'_>) {
    rest_of(run, "other");
}

fn rest_of(run: &mut Teller<'_>, item: &str) {
    run.fire(item);
    run.done(item, &[]);
    run.seal();
}
