//! Invalid imports and continuations, and pipelines.

use git_handoff::model::digest::Digest;
use git_handoff::model::entry::Event;

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
    Vector::new("import-of-other-bytes", "a product from elsewhere that the other run did not hand over", |lab| {
        lab.finish(imports::taking(lab, |lab, story| {
            story.product.sha256 = Digest::of(b"else");
            story.product.oid = lab.store.write_blob(b"else").unwrap();
        }));
    }),
    Vector::new("import-that-nobody-needs", "entry 0 has an import that the plan does not need", |lab| {
        lab.finish(imports::taking(lab, |_, story| {
            "@run/first/make:outputs/more".clone_into(&mut story.name);
        }));
    }),
    Vector::new("import-from-a-run-that-differs", "the run that was taken from is here, and sealed otherwise", |lab| {
        lab.finish(imports::taking(lab, |_, _| {}));
        imports::tell_first_otherwise(lab);
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
    Vector::new("pipeline-that-nobody-names", "entry 0 has a pipeline that no item names", |lab| {
        lab.finish(pipelines::run(lab, |run, lab| {
            let other = String::from_utf8_lossy(pipelines::SPEC).replace("p.one", "p.two");
            pipelines::seal_other(run, lab, "p.two", other.as_bytes());
        }));
    }),
    Vector::new("blocks-left-out", "the end of an attempt tells of fewer blocks than its pipeline has", |lab| {
        lab.finish(pipelines::run(lab, |run, _| pipelines::blocks(run, |told| told.truncate(3))));
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
    run.fire("other");
    run.done("other", &[]);
    run.seal();
}
